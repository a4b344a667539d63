//! # An Ingress has an annotation that its controller refuses
//!
//! From version 1.9 on ingress-nginx takes no annotations with parts of its configuration, unless it is told
//! to: its webhook refuses the whole Ingress. Where the webhook is off, the annotation has no effect.
//!
//! The AWS Load Balancer Controller makes no load balancer where `ssl-redirect` names a port on which
//! `listen-ports` has no HTTPS.
//!
//! Annotations that list ranges of addresses take nothing else: with a name or a text to be filled in,
//! ingress-nginx denies the whole place, and a cloud makes no load balancer.
//!
//! People see: `admission webhook "validate.nginx.ingress.kubernetes.io" denied the request:
//! nginx.ingress.kubernetes.io/configuration-snippet annotation cannot be used. Snippet directives are
//! disabled by the Ingress administrator`, `Failed build model due to ingress: listener does not exist for
//! SSL redirect port: 443`.
//!
//! ## Bad
//! ```yaml
//! annotations: {nginx.ingress.kubernetes.io/configuration-snippet: "proxy_set_header X-Shop 1;"}
//! # and a chart ingress-nginx 4.9.0 without controller.allowSnippetAnnotations
//! ```
//! ## Good
//! An annotation for the purpose, or `controller.allowSnippetAnnotations: true` where all who may write an
//! Ingress are trusted.
//!
//! ## When to suppress
//! Where the Ingress is for another controller of the same class.

use std::net::IpAddr;

use tiphys_diag::Severity;
use tiphys_graph::Owner;
use tiphys_value::{ObjectExt, Value};

use super::unread_chart_values::place_of;
use crate::{
    Context, Finding, Report, Rule,
    support::{
        chart_uses::ChartUse, dedup::Once, field_paths::keys, known_charts, pods::text, unrendered_files,
        value_steps::Step,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C2-refused-annotation",
    incident: "C2",
    severity: Severity::Warning,
    title: "an annotation of an Ingress that its controller refuses",
    page: page!("c2_refused_annotation.rs"),
    check,
};

const SNIPPETS: [&str; 5] = [
    "nginx.ingress.kubernetes.io/configuration-snippet",
    "nginx.ingress.kubernetes.io/server-snippet",
    "nginx.ingress.kubernetes.io/auth-snippet",
    "nginx.ingress.kubernetes.io/modsecurity-snippet",
    "nginx.ingress.kubernetes.io/stream-snippet",
];
/// The first version of the chart whose controller refuses them by itself.
const FIRST: &str = "4.8.0";

fn check(context: &Context<'_>, report: &mut Report) {
    snippets(context, report);
    listeners(context, report);
    ranges(context, report);
}

/// Annotations of Ingresses and Services that list ranges of addresses, with what becomes of a wrong one.
const RANGES: [(&str, &str); 7] = [
    ("nginx.ingress.kubernetes.io/whitelist-source-range", DENIED),
    ("nginx.ingress.kubernetes.io/allowlist-source-range", DENIED),
    ("nginx.ingress.kubernetes.io/denylist-source-range", DENIED),
    ("haproxy.org/allow-list", DENIED),
    ("alb.ingress.kubernetes.io/inbound-cidrs", NOT_MADE),
    ("service.beta.kubernetes.io/load-balancer-source-ranges", NOT_MADE),
    ("service.beta.kubernetes.io/azure-allowed-ip-ranges", NOT_MADE),
];
const DENIED: &str = "the controller cannot read the list, and denies what the Ingress leads to";
const NOT_MADE: &str = "the controller cannot read the list, and makes no load balancer";

/// Ranges of addresses that are none.
fn ranges(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    let objects = context.survey.objects.iter().filter(|it| matches!(&*it.key.kind, "Ingress" | "Service"));
    for object in objects.filter(|it| !unrendered_files::may_be_a_patch(context.survey, it)) {
        for (key, effect) in RANGES {
            let Some(listed) = object.value().annotation(key) else { continue };
            // What a template or a variable fills in is not told.
            if ["$", "{{", "(("].iter().any(|open| listed.contains(open)) {
                continue;
            }
            let mut wrong = listed.split(',').map(str::trim).filter(|it| !it.is_empty() && !is_range(it));
            let Some(first) = wrong.next() else { continue };
            // What nothing applies as it stands, somebody fills in before.
            let is_form =
                first.chars().all(|c| c.is_ascii_uppercase() || matches!(c, '_' | '-' | '/' | '0'..='9'));
            if is_form && matches!(object.owner, Owner::Unit(_)) {
                continue;
            }
            let diagnostic = RULE
                .diagnostic(format!(
                    "{key} of {} has {first}, which is no range of addresses",
                    object.title()
                ))
                .at(
                    context.survey.span(object, &keys(&["metadata", "annotations", key])),
                    "read as ranges between commas",
                )
                .because(effect)
                .help("write ranges such as 203.0.113.0/24, with commas between them");
            once.add(first, RULE.finding(context, object, diagnostic));
        }
    }
    once.report(report);
}

/// Whether a text is an address, or a range of addresses.
fn is_range(text: &str) -> bool {
    let (address, bits) = text.split_once('/').unwrap_or((text, "0"));
    let most = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    bits.parse::<u8>().is_ok_and(|bits| bits <= most)
}

/// Redirects of AWS's controller to a port that it is not told to listen on.
fn listeners(context: &Context<'_>, report: &mut Report) {
    const REDIRECT: &str = "alb.ingress.kubernetes.io/ssl-redirect";
    const PORTS: &str = "alb.ingress.kubernetes.io/listen-ports";
    const GROUP: &str = "alb.ingress.kubernetes.io/group.name";
    let mut once = Once::default();
    let ingresses = context.survey.objects.iter().filter(|it| it.key.kind == "Ingress");
    for object in ingresses.filter(|it| !unrendered_files::may_be_a_patch(context.survey, it)) {
        let value = object.value();
        // Others of a group may bring the listener.
        let (Some(to), Some(ports), None) =
            (value.annotation(REDIRECT), value.annotation(PORTS), value.annotation(GROUP))
        else {
            continue;
        };
        let Ok(Value::Array(listed)) = tiphys_yaml::from_yaml(ports) else { continue };
        let Ok(wanted) = to.parse::<u64>() else { continue };
        let is_wanted = |entry: &Value| entry.get("HTTPS").and_then(Value::as_u64) == Some(wanted);
        if listed.is_empty() || listed.iter().any(is_wanted) {
            continue;
        }
        let diagnostic = RULE
            .diagnostic(format!(
                "Failed build model due to ingress: listener does not exist for SSL redirect port: {to}: {}",
                object.title()
            ))
            .at(
                context.survey.span(object, &keys(&["metadata", "annotations", REDIRECT])),
                "redirects to this port",
            )
            .see(
                context.survey.span(object, &keys(&["metadata", "annotations", PORTS])),
                "and listens on these only",
            )
            .because(
                "the AWS Load Balancer Controller makes no load balancer for an Ingress that it cannot build",
            )
            .help(format!("add {{\"HTTPS\":{to}}} to listen-ports, or leave out ssl-redirect"));
        once.add(REDIRECT, RULE.finding(context, object, diagnostic));
    }
    once.report(report);
}

fn snippets(context: &Context<'_>, report: &mut Report) {
    let all = context.chart_uses();
    let controllers: Vec<&ChartUse> = all.iter().filter(|used| used.chart == "ingress-nginx").collect();
    // One that takes them may be the one that is meant.
    let Some(refusing) = controllers.first().filter(|_| controllers.iter().all(|used| refuses(used))) else {
        return;
    };
    let mut once = Once::default();
    for object in context.survey.objects.iter().filter(|object| matches!(object.owner, Owner::App(_))) {
        let class = text(&object.value()["spec"], "ingressClassName");
        let is_nginx = object.key.group == "networking.k8s.io" && object.key.kind == "Ingress";
        if !is_nginx || !(class.is_empty() || class.contains("nginx")) {
            continue;
        }
        let Some(snippet) = SNIPPETS.iter().find(|key| object.value().annotation(key).is_some()) else {
            continue;
        };
        let diagnostic = RULE
            .diagnostic(format!("{snippet} annotation cannot be used. Snippet directives are disabled by the Ingress administrator: {}", object.title()))
            .at(context.survey.span(object, &keys(&["metadata", "annotations", snippet])), "refused by the controller")
            .see(refusing.span.clone(), "without controller.allowSnippetAnnotations")
            .because("the controller's webhook refuses the whole Ingress")
            .help("use an annotation for the purpose, or set controller.allowSnippetAnnotations: true");
        once.add(snippet, RULE.finding(context, object, diagnostic).likely());
    }
    for used in all {
        for (index, values) in used.values.iter().enumerate() {
            each_annotation(values, &mut Vec::new(), &mut |snippet: &str, steps: &[Step<'_>]| {
                let Some(place) = place_of(context, used, index, steps) else { return };
                let diagnostic = RULE
                    .diagnostic(format!("{snippet} annotation cannot be used. Snippet directives are disabled by the Ingress administrator: values of {}", used.by))
                    .at(place, "refused by the controller")
                    .see(refusing.span.clone(), "without controller.allowSnippetAnnotations")
                    .because("the controller's webhook refuses the Ingress that the chart makes with it")
                    .help("use an annotation for the purpose, or set controller.allowSnippetAnnotations: true");
                once.add(snippet, Finding::new(RULE.incident, diagnostic).object(used.by.clone()).likely());
            });
        }
    }
    once.report(report);
}

/// Calls back for each snippet among the annotations of an Ingress that is switched on in values and is of no
/// other class.
fn each_annotation<'a>(
    value: &'a Value,
    steps: &mut Vec<Step<'a>>,
    found: &mut dyn FnMut(&'a str, &[Step<'a>]),
) {
    const MAX_DEPTH: usize = 16;
    let Some(map) = value.as_object().filter(|_| steps.len() < MAX_DEPTH) else { return };
    let class =
        ["className", "ingressClassName", "ingressClass"].iter().find_map(|key| map.get(*key)?.as_str());
    let is_other = class.is_some_and(|class| !class.contains("nginx"));
    if is_other || map.get("enabled") == Some(&Value::Bool(false)) {
        return;
    }
    for (key, below) in map {
        steps.push(Step::Key(key));
        if SNIPPETS.contains(&key.as_str()) && below.is_string() {
            found(key, steps);
        }
        each_annotation(below, steps, found);
        steps.pop();
    }
}

/// Whether a controller refuses them: by its version, and because nothing says otherwise.
fn refuses(used: &ChartUse) -> bool {
    let version = used.version.trim();
    let is_told = !version.is_empty() && !version.contains(['>', '*', '$', '{', '<']);
    let says = |path: &[&str]| used.text(path).is_some_and(|it| it == "true");
    is_told
        && !known_charts::is_older(version, FIRST)
        && !says(&["controller", "allowSnippetAnnotations"])
        && !says(&["controller", "config", "allow-snippet-annotations"])
}
