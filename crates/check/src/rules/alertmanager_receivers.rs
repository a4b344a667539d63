//! Receivers that routes of Alertmanager name and nothing has, in values of the charts that write its
//! configuration.

use std::collections::BTreeSet;

use tiphys_diag::similar_names;
use tiphys_value::{ObjectExt, Value};

use super::{c2_undefined_name::RULE, unread_chart_values::place_of};
use crate::{
    Context, Finding, Report,
    support::{
        chart_uses::ChartUse,
        placeholders,
        pods::{list, text},
        value_steps::Step,
    },
};

/// What the chart has where values say nothing: its routes and its receiver (`kube-prometheus-stack`,
/// `alertmanager.config`).
const BY_DEFAULT: &str = "null";
const STACK: &str = "kube-prometheus-stack";

pub(super) fn check(context: &Context<'_>, report: &mut Report) {
    let uses = context.chart_uses().iter();
    for used in
        uses.filter(|it| [STACK, "alertmanager"].contains(&it.chart.as_str()) && !it.has_hidden_values)
    {
        let steps: &[&str] = if used.chart == STACK { &["alertmanager", "config"] } else { &["config"] };
        let values = used.merged_values();
        let Some(config) = values.at(steps) else { continue };
        let is_off = values.at(&[steps[0], "enabled"]).and_then(Value::as_bool) == Some(false);
        let receivers = list(config, "receivers");
        if is_off || receivers.is_empty() {
            continue;
        }
        odd_fields(context, used, steps, receivers, report);
        let known: BTreeSet<&str> = receivers.iter().map(|it| text(it, "name")).collect();
        if known.iter().any(|name| name.is_empty() || placeholders::is_in(name)) {
            continue;
        }
        let mut named = BTreeSet::new();
        let route = &config["route"];
        names_in(route, 0, &mut named);
        // Values replace a list as a whole, and leave what they do not speak of as the chart has it.
        let is_of_stack = used.chart == STACK;
        let keeps_route = is_of_stack && (route.get("routes").is_none() || route.get("receiver").is_none());
        let is_from_chart = keeps_route && !known.contains(BY_DEFAULT);
        if is_from_chart {
            named.insert(BY_DEFAULT);
        }
        for name in named.into_iter().filter(|name| !known.contains(name) && !placeholders::is_in(name)) {
            report.add(finding(context, used, steps, name, is_from_chart && name == BY_DEFAULT));
        }
    }
}

/// Fields of receivers that Alertmanager does not know, and chats of Telegram that are no numbers
/// (Alertmanager docs, "Configuration").
fn odd_fields(
    context: &Context<'_>,
    used: &ChartUse,
    steps: &[&str],
    receivers: &[Value],
    report: &mut Report,
) {
    const KNOWN: [&str; 19] = [
        "name",
        "discord_configs",
        "email_configs",
        "incidentio_configs",
        "jira_configs",
        "mattermost_configs",
        "msteams_configs",
        "msteamsv2_configs",
        "opsgenie_configs",
        "pagerduty_configs",
        "pushover_configs",
        "rocketchat_configs",
        "slack_configs",
        "sns_configs",
        "telegram_configs",
        "victorops_configs",
        "webex_configs",
        "webhook_configs",
        "wechat_configs",
    ];
    for (at, receiver) in receivers.iter().enumerate() {
        let odd = receiver.as_object().into_iter().flat_map(|map| map.keys());
        for key in odd.filter(|key| !KNOWN.contains(&key.as_str()) && !placeholders::is_in(key)) {
            let Some(meant) = similar_names::nearest_slip(key, KNOWN.into_iter()) else { continue };
            let message = format!("field {key} not found in type config.plain");
            let help = format!("write {meant}");
            report.add(of_field(context, used, (steps, at, key), &message, help));
        }
        for telegram in list(receiver, "telegram_configs") {
            if let Some(Value::String(chat)) = telegram.get("chat_id")
                && chat.parse::<i64>().is_ok()
            {
                let message = format!("chat_id: cannot unmarshal !!str `{chat}` into int64");
                let help = format!("write chat_id: {chat} without quotes");
                report.add(of_field(context, used, (steps, at, "telegram_configs"), &message, help));
            }
        }
    }
}

fn of_field(
    context: &Context<'_>,
    used: &ChartUse,
    (steps, at, key): (&[&str], usize, &str),
    message: &str,
    help: String,
) -> Finding {
    let index = used
        .values
        .iter()
        .rposition(|values| values.at(steps).is_some_and(|it| it.get("receivers").is_some()));
    let path: Vec<Step<'_>> = steps
        .iter()
        .copied()
        .chain(["receivers"])
        .map(Step::Key)
        .chain([Step::Index(at), Step::Key(key)])
        .collect();
    let place = index.and_then(|index| place_of(context, used, index, &path));
    let diagnostic = RULE
        .diagnostic(format!("{}: Alertmanager refuses its configuration: {message}", used.by))
        .at(place.unwrap_or_else(|| used.span.clone()), "in this receiver")
        .because(
            "the operator refuses the configuration as a whole, and Alertmanager keeps the one from before",
        )
        .help(help);
    Finding::new(RULE.incident, diagnostic).likely()
}

/// The receivers that a route and those below it name.
fn names_in<'a>(route: &'a Value, depth: usize, found: &mut BTreeSet<&'a str>) {
    const MAX_DEPTH: usize = 32;
    if depth > MAX_DEPTH {
        return;
    }
    found.extend(Some(text(route, "receiver")).filter(|name| !name.is_empty()));
    list(route, "routes").iter().for_each(|below| names_in(below, depth + 1, found));
}

fn finding(
    context: &Context<'_>,
    used: &ChartUse,
    steps: &[&str],
    name: &str,
    is_from_chart: bool,
) -> Finding {
    let index = used
        .values
        .iter()
        .rposition(|values| values.at(steps).is_some_and(|it| it.get("receivers").is_some()));
    let path: Vec<Step<'_>> = steps.iter().copied().chain(["receivers"]).map(Step::Key).collect();
    let place = index.and_then(|index| place_of(context, used, index, &path));
    let mut diagnostic = RULE
        .diagnostic(format!("{}: undefined receiver {name:?} used in route", used.by))
        .at(place.unwrap_or_else(|| used.span.clone()), "no receiver here has this name")
        .because(
            "the operator refuses the configuration as a whole, and Alertmanager keeps the one from before",
        );
    diagnostic = match is_from_chart {
        true => diagnostic.help(format!(
            "add `- name: {name:?}` to the receivers: the chart routes Watchdog to it, and a list in values replaces the chart's own"
        )),
        false => diagnostic.help("add a receiver of this name, or name one that is there"),
    };
    Finding::new(RULE.incident, diagnostic).likely()
}
