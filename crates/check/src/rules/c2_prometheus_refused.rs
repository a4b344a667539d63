//! # Prometheus cannot read a rule or a monitor
//!
//! The expression of an alert is a text for the API server: what is wrong in it shows only where Prometheus
//! reads it. The operator leaves such a rule out, or its webhook refuses the whole resource; either way the
//! alert that was meant to call somebody never does. Durations are `1h30m`, not words, and a target that may
//! take longer to answer than the time between two questions is left out, too.
//!
//! People see: `could not parse expression: 1:27: parse error: unexpected character: '&'`, `not a valid
//! duration string: "5 minutes"`, `scrape timeout "30s" greater than scrape interval "15s"`, or nothing at
//! all.
//!
//! ## Bad
//! ```yaml
//! kind: PrometheusRule
//! spec:
//!   groups: [{name: shop, rules: [{alert: Slow, expr: "up == 0 && slow > 1", for: 5 minutes}]}]
//! ```
//! ## Good
//! ```yaml
//! kind: PrometheusRule
//! spec:
//!   groups: [{name: shop, rules: [{alert: Slow, expr: "up == 0 and slow > 1", for: 5m}]}]
//! ```
//! ## When to suppress
//! Where something else than Prometheus reads the rules, in a language that has more words.

use std::sync::LazyLock;

use regex::Regex;
use tiphys_diag::Severity;
use tiphys_graph::Object;
use tiphys_value::{FieldPath, Value};

use crate::{
    Context, Report, Rule,
    support::{
        dedup::Once,
        field_paths::keys,
        pods::{list, text},
        promql, unrendered_files,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C2-prometheus-refused",
    incident: "C2",
    severity: Severity::Warning,
    title: "Prometheus cannot read a rule or a monitor",
    page: page!("c2_prometheus_refused.rs"),
    check,
};

/// What Prometheus refuses.
struct PrometheusRefusal {
    field: FieldPath,
    message: String,
    label: &'static str,
}

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let reads_more = is_read_by_another(context);
    let mut once = Once::default();
    for object in survey.objects.iter().filter(|object| object.key.group == "monitoring.coreos.com") {
        let faults = match object.key.kind.as_str() {
            "PrometheusRule" => of_rules(object, reads_more),
            "ServiceMonitor" => of_endpoints(object, "endpoints"),
            "PodMonitor" => of_endpoints(object, "podMetricsEndpoints"),
            "Probe" => of_times(&object.value()["spec"], &keys(&["spec"])),
            _ => continue,
        };
        if faults.is_empty() || unrendered_files::may_be_a_patch(survey, object) {
            continue;
        }
        for fault in faults {
            let diagnostic = RULE
                .diagnostic(format!("{}: {}", object.title(), fault.message))
                .at(survey.span(object, &fault.field), fault.label)
                .because("the operator leaves out what Prometheus could not load, or its webhook refuses the resource");
            once.add(&fault.message, RULE.finding(context, object, diagnostic));
        }
    }
    once.report(report);
}

/// Whether the repository installs VictoriaMetrics, whose language has more words and fewer limits.
fn is_read_by_another(context: &Context<'_>) -> bool {
    let survey = context.survey;
    let is_chart = |chart: &str| chart.starts_with("victoria-metrics") || chart.starts_with("vm");
    survey.objects.iter().any(|object| {
        object.key.group == "operator.victoriametrics.com"
            || object.key.kind == "HelmRelease"
                && object
                    .value()
                    .pointer("/spec/chart/spec/chart")
                    .and_then(Value::as_str)
                    .is_some_and(is_chart)
    }) || survey
        .apps
        .iter()
        .any(|app| app.application.spec.effective_sources().iter().any(|source| is_chart(&source.chart)))
}

fn of_rules(object: &Object, reads_more: bool) -> Vec<PrometheusRefusal> {
    let mut faults = Vec::new();
    let spec = &object.value()["spec"];
    for (index, group) in list(spec, "groups").iter().enumerate() {
        let at = keys(&["spec", "groups"]).index(index);
        faults.extend(duration(group, &at, "interval"));
        for (index, rule) in list(group, "rules").iter().enumerate() {
            let at = at.key("rules").index(index);
            faults.extend(["for", "keep_firing_for"].iter().filter_map(|field| duration(rule, &at, field)));
            if !reads_more {
                faults.extend(expression(rule, &at));
            }
            faults.extend(record_name(rule, &at));
        }
    }
    faults
}

/// What a rule records is the name of a series: letters, digits, `_` and `:`. Prometheus 3 takes any name, and
/// the expressions that ask for such a one have to quote it, which nobody does by accident.
fn record_name(rule: &Value, at: &FieldPath) -> Option<PrometheusRefusal> {
    let name = text(rule, "record");
    let is_filled_in = ["{{", "${", "$(", "<"].iter().any(|mark| name.contains(mark));
    let is_name = !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ':'));
    (!name.is_empty() && !is_name && !is_filled_in).then(|| PrometheusRefusal {
        field: at.key("record"),
        message: format!("invalid recording rule name: {name}"),
        label: "a name has letters, digits, _ and :",
    })
}

fn expression(rule: &Value, at: &FieldPath) -> Option<PrometheusRefusal> {
    let query = text(rule, "expr");
    let error = promql::fault(query)?;
    // What is yet to be filled in, and the language of Loki's ruler.
    let is_other = ["{{", "${", "<<", "'|'"].iter().any(|mark| query.contains(mark) || error.contains(mark));
    let name = [text(rule, "alert"), text(rule, "record")].into_iter().find(|name| !name.is_empty());
    (!is_other).then(|| PrometheusRefusal {
        field: at.key("expr"),
        message: format!("could not parse the expression of {}: {}", name.unwrap_or("a rule"), error),
        label: "this is no PromQL",
    })
}

fn of_endpoints(object: &Object, list_of: &str) -> Vec<PrometheusRefusal> {
    let endpoints = list(&object.value()["spec"], list_of).iter().enumerate();
    endpoints
        .flat_map(|(index, endpoint)| of_times(endpoint, &keys(&["spec", list_of]).index(index)))
        .collect()
}

fn of_times(endpoint: &Value, at: &FieldPath) -> Vec<PrometheusRefusal> {
    let faults: Vec<PrometheusRefusal> =
        ["interval", "scrapeTimeout"].iter().filter_map(|field| duration(endpoint, at, field)).collect();
    if !faults.is_empty() {
        return faults;
    }
    let (interval, timeout) = (text(endpoint, "interval"), text(endpoint, "scrapeTimeout"));
    match (milliseconds(interval), milliseconds(timeout)) {
        (Some(between), Some(longest)) if longest > between => vec![PrometheusRefusal {
            field: at.key("scrapeTimeout"),
            message: format!("scrape timeout \"{timeout}\" greater than scrape interval \"{interval}\""),
            label: "longer than the time between two questions",
        }],
        _ => Vec::new(),
    }
}

fn duration(value: &Value, at: &FieldPath, field: &str) -> Option<PrometheusRefusal> {
    let given = text(value, field);
    let is_filled_in = ["{{", "${", "$(", "<"].iter().any(|mark| given.contains(mark));
    if given.is_empty() || is_filled_in || milliseconds(given).is_some() {
        return None;
    }
    Some(PrometheusRefusal {
        field: at.key(field),
        message: format!("not a valid duration string: \"{given}\""),
        label: "a number and a unit for each part, as in 1h30m",
    })
}

/// The length of a duration as Prometheus writes it, in milliseconds (Prometheus docs, "Querying basics",
/// "Time durations"); nothing if it is none.
fn milliseconds(duration: &str) -> Option<u64> {
    static FORM: LazyLock<Regex> = LazyLock::new(|| {
        let form = "^(?:([0-9]+)y)?(?:([0-9]+)w)?(?:([0-9]+)d)?(?:([0-9]+)h)?(?:([0-9]+)m)?(?:([0-9]+)s)?(?:([0-9]+)ms)?$";
        Regex::new(form).expect("the pattern is well formed")
    });
    const UNITS: [u64; 7] = [31_536_000_000, 604_800_000, 86_400_000, 3_600_000, 60_000, 1_000, 1];
    if duration == "0" {
        return Some(0);
    }
    let found = FORM.captures(duration).filter(|_| !duration.is_empty())?;
    let mut sum: u64 = 0;
    for (index, unit) in UNITS.iter().enumerate() {
        let Some(number) = found.get(index + 1) else { continue };
        sum = sum.checked_add(number.as_str().parse::<u64>().ok()?.checked_mul(*unit)?)?;
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use tiphys_value::json;

    use super::*;

    #[test]
    fn durations_are_those_of_prometheus() {
        for (text, length) in [
            ("5m", Some(300_000)),
            ("1h30m", Some(5_400_000)),
            ("0", Some(0)),
            ("250ms", Some(250)),
            ("30m1h", None),
            ("5 minutes", None),
            ("5", None),
            ("-5m", None),
            ("", None),
            ("99999999999999999999y", None),
        ] {
            assert_eq!(milliseconds(text), length, "{text}");
        }
    }

    #[test]
    fn other_languages_are_left_alone() {
        let at = keys(&["spec"]);
        for query in [
            "sum(rate({app=\"x\"} |= \"error\" [5m]))",
            "up > {{ .Values.limit }}",
            "up == ${LIMIT}",
            "up == 0",
        ] {
            assert!(expression(&json!({"alert": "A", "expr": query}), &at).is_none(), "{query}");
        }
    }
}
