//! # A rule of a route that leads nowhere
//!
//! Each rule of an HTTPRoute or GRPCRoute has its own matches, filters and backends. A rule with neither a
//! backend nor a filter answers every request that it matches with an error: nothing of another rule is
//! taken over. A dash too many makes two rules of one, and the second, without matches, takes all paths.
//!
//! People see: `500 Internal Server Error` or `404` for the paths of one rule, `ResolvedRefs: True`, and a
//! backend that answers paths it was to be kept from.
//!
//! ## Bad
//! ```yaml
//! rules:
//! - matches: [{path: {value: /hooks}}]
//! - backendRefs: [{name: web, port: 80}]
//! ```
//! ## Good
//! ```yaml
//! rules:
//! - matches: [{path: {value: /hooks}}]
//!   backendRefs: [{name: web, port: 80}]
//! ```
//! ## When to suppress
//! Where the paths of the rule are to be refused.

use tiphys_diag::Severity;
use tiphys_graph::Object;
use tiphys_value::Value;

use crate::{
    Context, Report, Rule,
    support::{dedup::Once, field_paths::keys, pods::list, unrendered_files},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "F4-rule-without-backend",
    incident: "F4",
    severity: Severity::Warning,
    title: "a rule of a route that has neither a backend nor a filter",
    page: page!("f4_rule_without_backend.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for object in &context.survey.objects {
        let is_route = object.key.group == "gateway.networking.k8s.io"
            && matches!(object.key.kind.as_str(), "HTTPRoute" | "GRPCRoute");
        if !is_route || unrendered_files::may_be_a_patch(context.survey, object) {
            continue;
        }
        let rules = list(&object.value()["spec"], "rules");
        // Where no rule has a backend, something else gives them.
        if rules.iter().all(|rule| list(rule, "backendRefs").is_empty()) {
            continue;
        }
        for (at, _) in rules.iter().enumerate().filter(|(_, rule)| leads_nowhere(rule)) {
            once.add("", finding(context, object, at));
        }
    }
    once.report(report);
}

fn leads_nowhere(rule: &Value) -> bool {
    rule.is_object() && list(rule, "backendRefs").is_empty() && list(rule, "filters").is_empty()
}

fn finding(context: &Context<'_>, object: &Object, at: usize) -> crate::Finding {
    let rules = list(&object.value()["spec"], "rules");
    let place = keys(&["spec", "rules"]).index(at);
    let mut diagnostic = RULE
        .diagnostic(format!("rule {} of {} has neither a backend nor a filter", at + 1, object.title()))
        .at(context.survey.span(object, &place), "what it matches is answered with an error")
        .because("each rule has its own backends; nothing is taken over from the others");
    let is_other_half =
        |rule: &Value| list(rule, "matches").is_empty() && !list(rule, "backendRefs").is_empty();
    if rules.get(at + 1).is_some_and(is_other_half) {
        diagnostic = diagnostic
            .see(
                context.survey.span(object, &keys(&["spec", "rules"]).index(at + 1)),
                "this is a rule of its own, and takes every path",
            )
            .help("make one rule of the two: take the dash before `backendRefs` away");
    } else {
        diagnostic = diagnostic.help("give it `backendRefs`, or a filter that answers");
    }
    RULE.finding(context, object, diagnostic).likely()
}
