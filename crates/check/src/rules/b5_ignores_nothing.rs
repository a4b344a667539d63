//! # An ignore rule that fits nothing
//!
//! `ignoreDifferences` names fields of kinds. A group that is no group (`core`, `apps/v1`, or none for a kind
//! that has one), a kind in the plural, a JSON pointer with a wildcard, with an unescaped slash, without the
//! index of an item or the `spec` that it begins with: none of these is refused, none fits, and the difference stays.
//!
//! People see: an Application that stays OutOfSync though the difference is ignored, and that self-heal syncs
//! again and again.
//!
//! ## Bad
//! ```yaml
//! ignoreDifferences:
//! - kind: Deployment                # of group apps
//!   jsonPointers: [/spec/template/spec/containers/*/image]
//! ```
//! ## Good
//! ```yaml
//! ignoreDifferences:
//! - group: apps
//!   kind: Deployment
//!   jqPathExpressions: ['.spec.template.spec.containers[].image']
//! ```
//! ## When to suppress
//! Where a kind of that name and group is served by something that the repository does not have.

use tiphys_diag::Severity;
use tiphys_graph::Object;
use tiphys_value::{FieldPath, ObjectExt, Value};

use crate::{
    Context, Report, Rule,
    support::{
        dedup::Once,
        field_paths::keys,
        kind_groups::KindGroups,
        placeholders,
        pods::{list, text},
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "B5-ignores-nothing",
    incident: "B5",
    severity: Severity::Warning,
    title: "an ignore rule that fits nothing",
    page: page!("b5_ignores_nothing.rs"),
    check,
};

/// Fields that are lists in every kind that has them.
const LISTS: [&str; 5] = ["containers", "initContainers", "volumeMounts", "volumeClaimTemplates", "webhooks"];

/// What is wrong with a rule: where, what it says, and what to write.
struct BadIgnoreRule {
    field: FieldPath,
    what: String,
    effect: &'static str,
    help: String,
}

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    let known = KindGroups::from_survey(context.survey);
    for object in &context.survey.objects {
        let holder: &[&str] = match (object.key.group.as_str(), object.key.kind.as_str()) {
            ("argoproj.io", "Application") => &["spec"],
            ("argoproj.io", "ApplicationSet") => &["spec", "template", "spec"],
            _ => continue,
        };
        let path = keys(holder).key("ignoreDifferences");
        let rules = path.get(object.value()).and_then(Value::as_array).into_iter().flatten();
        for (at, rule) in rules.enumerate() {
            for fault in faults(context, &known, rule, &path.index(at)) {
                add(context, object, fault, &mut once);
            }
        }
    }
    once.report(report);
}

fn faults(
    context: &Context<'_>,
    known: &KindGroups<'_>,
    rule: &Value,
    path: &FieldPath,
) -> Vec<BadIgnoreRule> {
    if !rule.is_object() {
        return Vec::new();
    }
    let ways = ["jsonPointers", "jqPathExpressions", "managedFieldsManagers"];
    if ways.iter().all(|way| list(rule, way).is_empty()) {
        return vec![BadIgnoreRule {
            field: path.clone(),
            what: format!("{} without a field", text(rule, "kind")),
            effect: "which fields is not said",
            help: format!("name the fields under `{}`, or take the rule out", ways[1]),
        }];
    }
    let pointers = list(rule, "jsonPointers").iter().enumerate();
    let pointers = pointers.filter_map(|(at, pointer)| Some((at, pointer.as_str()?)));
    let of_pointer = |(at, it): (usize, &str)| {
        let field = path.key("jsonPointers").index(at);
        pointer_fault(it, field.clone()).or_else(|| misplaced_pointer(context, rule, it, field))
    };
    kind_fault(known, rule, path).into_iter().chain(pointers.filter_map(of_pointer)).collect()
}

/// A group and kind that nothing has.
fn kind_fault(known: &KindGroups<'_>, rule: &Value, path: &FieldPath) -> Option<BadIgnoreRule> {
    let (group, kind) = (text(rule, "group"), text(rule, "kind"));
    let fault = known.fault(group, kind)?;
    Some(BadIgnoreRule {
        field: path.key(fault.field),
        what: format!("{kind} of group {group:?}"),
        effect: "nothing is of this group and kind",
        help: fault.help,
    })
}

/// A JSON pointer to a field that all objects of the kind have below `spec` alone.
fn misplaced_pointer(
    context: &Context<'_>,
    rule: &Value,
    pointer: &str,
    field: FieldPath,
) -> Option<BadIgnoreRule> {
    const OF_MOST_KINDS: [&str; 6] = ["metadata", "spec", "status", "data", "webhooks", "rules"];
    let first = pointer.strip_prefix('/')?.split('/').next()?;
    if first.is_empty() || OF_MOST_KINDS.contains(&first) {
        return None;
    }
    let (group, kind) = (text(rule, "group"), text(rule, "kind"));
    let mut of_kind =
        context.survey.objects.iter().filter(|it| it.key.kind == kind && it.key.group == group).peekable();
    of_kind.peek()?;
    let mut is_below = false;
    for object in of_kind {
        if object.value().get(first).is_some() {
            return None;
        }
        is_below |= object.value().at(&["spec", first]).is_some();
    }
    is_below.then(|| BadIgnoreRule {
        field,
        what: format!("JSON pointer {pointer:?}"),
        effect: "a pointer begins at the object itself, and this field lies below spec",
        help: format!("write `/spec{pointer}`"),
    })
}

/// A JSON pointer that leads nowhere in any object.
fn pointer_fault(pointer: &str, field: FieldPath) -> Option<BadIgnoreRule> {
    let fault = |effect: &'static str, help: String| {
        Some(BadIgnoreRule { field: field.clone(), what: format!("JSON pointer {pointer:?}"), effect, help })
    };
    if pointer.contains("{{") {
        return None;
    }
    let Some(rest) = pointer.strip_prefix('/') else {
        return fault("no JSON pointer: one begins with a slash", "write `/spec/replicas`, say".to_owned());
    };
    let steps: Vec<&str> = rest.split('/').collect();
    if steps.contains(&"*") {
        return fault(
            "a JSON pointer has no wildcards",
            "write a jq path expression, such as `.spec.containers[].image`".to_owned(),
        );
    }
    let without_index = steps.windows(2).position(|pair| {
        LISTS.contains(&pair[0]) && pair[1] != "-" && !pair[1].bytes().all(|it| it.is_ascii_digit())
    });
    if let Some(at) = without_index {
        let (way, below) = (steps[..=at].join("."), steps[at + 1..].join("."));
        return fault(
            "this is a list, and a pointer into it needs the index of an item",
            format!("write the jq path expression `.{way}[].{below}`, or an index"),
        );
    }
    // Keys below these have no maps in them.
    let holder = steps
        .windows(2)
        .position(|pair| pair[0] == "metadata" && matches!(pair[1], "annotations" | "labels"))?;
    let key = steps.get(holder + 2..).filter(|key| key.len() > 1)?;
    let way = steps[..holder + 2].join("/");
    fault("the slash in the key parts it in two", format!("write `/{way}/{}`", key.join("~1")))
}

fn add(context: &Context<'_>, object: &Object, fault: BadIgnoreRule, once: &mut Once) {
    if placeholders::is_in(&fault.what) {
        return;
    }
    let diagnostic = RULE
        .diagnostic(format!("{} ignores {}, which fits nothing", object.title(), fault.what))
        .at(context.survey.span(object, &fault.field), fault.effect)
        .because("a rule that fits nothing is passed over without a word, and the difference stays")
        .help(fault.help);
    once.add(&fault.what, RULE.finding(context, object, diagnostic));
}
