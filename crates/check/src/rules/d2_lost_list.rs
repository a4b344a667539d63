//! # One item stands where a chart reads a list of items
//!
//! Charts hand lists of Kubernetes on as they are: hosts and `tls` of an Ingress, tolerations. Without the
//! dash before it, an item is a map: a template that walks through it gets the values of its keys, one after
//! the other, and what it makes of them is refused.
//!
//! People see: `can't evaluate field host in type interface {}`, `range can't iterate over …`,
//! `cannot overwrite table with non table`, `Invalid type. Expected: array, given: object`.
//!
//! ## Bad
//! ```yaml
//! ingress: {hosts: {host: shop.example.com, paths: [/]}}
//! ```
//! ## Good
//! ```yaml
//! ingress: {hosts: [{host: shop.example.com, paths: [/]}]}
//! ```
//! ## When to suppress
//! Where the chart reads a map of hosts by their names, and one of them is called `host`.

use tiphys_diag::{Severity, Span};
use tiphys_value::{Map, Value};

use super::unread_chart_values::place_of;
use crate::{
    Context, Finding, Report, Rule,
    support::{
        chart_uses::ChartUse,
        dedup::Once,
        value_steps::{Step, each_map},
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-lost-list",
    incident: "D2",
    severity: Severity::Warning,
    title: "one item where a chart reads a list of items",
    page: page!("d2_lost_list.rs"),
    check,
};

/// Lists of Kubernetes that charts hand on: the list, what one of the steps to it is called, the key that its
/// items have, and all keys of theirs.
const LISTS: [(&str, &str, &str, &[&str]); 3] = [
    ("hosts", "ingress", "host", &["host", "path", "paths", "pathType"]),
    ("tls", "ingress", "secretName", &["hosts", "secretName"]),
    ("tolerations", "", "operator", &["effect", "key", "operator", "tolerationSeconds", "value"]),
];

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for used in context.chart_uses() {
        for (index, values) in used.values.iter().enumerate() {
            each_map(values, &mut Vec::new(), &mut |path, item| {
                let list = list_of(path, item);
                if let Some(name) = list {
                    once.add(name, finding(used, name, place_of(context, used, index, path)));
                }
                list.is_none()
            });
        }
    }
    once.report(report);
}

fn finding(used: &ChartUse, name: &str, place: Option<Span>) -> Finding {
    let diagnostic = RULE
        .diagnostic(format!("{} gives chart {} one item for {name}, and no list", used.by, used.chart))
        .at(place.unwrap_or_else(|| used.span.clone()), "a list belongs here")
        .because("what a chart makes of it has no items, and Helm or the API server refuses it")
        .help("begin the item with a dash");
    Finding::new(RULE.incident, diagnostic).likely()
}

/// The list that a map at the end of some steps is an item of.
fn list_of(path: &[Step<'_>], item: &Map<String, Value>) -> Option<&'static str> {
    let Some(Step::Key(name)) = path.last() else { return None };
    let (list, above, needed, keys) = LISTS.iter().find(|(list, ..)| list == name)?;
    let is_above = |step: &Step<'_>| matches!(step, Step::Key(key) if key.to_lowercase().contains(above));
    let is_plain = item.get(*needed).is_some_and(Value::is_string) && path.iter().any(is_above);
    (is_plain && item.keys().all(|key| keys.contains(&key.as_str()))).then_some(*list)
}
