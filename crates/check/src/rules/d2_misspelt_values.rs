//! # Values with a field that pods do not have
//!
//! Charts hand `tolerations` and `resources` of their values on to pods as they are. A field that is misspelt there
//! is not the chart's to refuse: the API server drops it or refuses the object, and the pod stays where no taint is
//! tolerated, or runs without the limits that it was to have.
//!
//! People see: pods `Pending` with `untolerated taint`, or `strict decoding error: unknown field
//! "spec.template.spec.tolerations[0].affect"`.
//!
//! ## Bad
//! ```yaml
//! tolerations:
//!   - key: node-role.kubernetes.io/control-plane
//!     affect: NoSchedule
//! ```
//! ## Good
//! ```yaml
//! tolerations:
//!   - key: node-role.kubernetes.io/control-plane
//!     effect: NoSchedule
//! ```
//! ## When to suppress
//! Where the chart gives the field a meaning of its own.

use tiphys_diag::Severity;
use tiphys_graph::Object;
use tiphys_value::{FieldPath, Value};

use crate::{
    Context, Report, Rule,
    support::{fields::keys, once::Once, parts, similar},
};

/// See the module.
pub const RULE: Rule = Rule {
    id: "D2-misspelt-values",
    incident: "D2",
    severity: Severity::Warning,
    title: "values with a field that pods do not have",
    source: include_str!("d2_misspelt_values.rs"),
    check,
};

const OF_TOLERATION: [&str; 5] = ["key", "operator", "value", "effect", "tolerationSeconds"];
const OF_RESOURCES: [&str; 3] = ["limits", "requests", "claims"];

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for object in context.survey.objects.iter().filter(|it| !parts::is_loose(context.survey, it)) {
        let found = match (object.key.group.as_str(), object.key.kind.as_str()) {
            ("helm.toolkit.fluxcd.io", "HelmRelease") => vec![keys(&["spec", "values"])],
            ("argoproj.io", "Application") => of_application(object),
            _ => continue,
        };
        for root in found {
            let Some(values) = root.get(object.value()) else { continue };
            let mut wrong = Vec::new();
            collect(values, &root, 0, &mut wrong);
            for (path, name, meant) in wrong {
                let diagnostic = RULE
                    .diagnostic(format!("the values of {} have a field {name}: {meant} is meant", object.title()))
                    .at(context.survey.span(object, &path.key(&name)), "pods have no such field")
                    .because("charts hand it on as it is: the API server refuses it, or drops it and what it was to say")
                    .help(format!("write {meant}"));
                once.add(&name, RULE.finding(context, object, diagnostic).likely());
            }
        }
    }
    once.report(report);
}

fn of_application(object: &Object) -> Vec<FieldPath> {
    let spec = object.value().get("spec").unwrap_or(&Value::Null);
    let several = spec.get("sources").and_then(Value::as_array).map_or(0, Vec::len);
    let sources = (0..several).map(|at| keys(&["spec", "sources"]).index(at));
    let all = sources.chain([keys(&["spec", "source"])]);
    all.map(|source| source.key("helm").key("valuesObject")).collect()
}

/// Fields that are misspelt, each with its place and what is meant.
fn collect(
    value: &Value,
    path: &FieldPath,
    depth: usize,
    wrong: &mut Vec<(FieldPath, String, &'static str)>,
) {
    const MAX_DEPTH: usize = 32;
    if depth > MAX_DEPTH {
        return;
    }
    match value {
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                collect(item, &path.index(at), depth + 1, wrong);
            }
        }
        Value::Object(map) => {
            for (name, below) in map {
                let path = path.key(name);
                match (name.as_str(), below) {
                    ("tolerations", Value::Array(items)) => {
                        for (at, item) in items.iter().enumerate().filter(|(_, item)| is_toleration(item)) {
                            slips(item, &path.index(at), &OF_TOLERATION, wrong);
                        }
                    }
                    ("resources", Value::Object(_)) if has_quantities(below) => {
                        slips(below, &path, &OF_RESOURCES, wrong);
                    }
                    _ => collect(below, &path, depth + 1, wrong),
                }
            }
        }
        _ => {}
    }
}

fn is_toleration(item: &Value) -> bool {
    OF_TOLERATION.iter().any(|key| item.get(*key).is_some())
}

/// Whether a field holds amounts of processor time and memory.
fn has_quantities(resources: &Value) -> bool {
    let fields = resources.as_object().into_iter().flat_map(|map| map.values());
    fields.into_iter().any(|it| it.get("cpu").is_some() || it.get("memory").is_some())
}

/// Notes the fields of an object that are nearly one that is known.
fn slips(
    value: &Value,
    path: &FieldPath,
    known: &'static [&'static str],
    wrong: &mut Vec<(FieldPath, String, &'static str)>,
) {
    let names = value.as_object().into_iter().flat_map(|map| map.keys());
    for name in names.filter(|name| !known.contains(&name.as_str())) {
        let meant = similar::nearest(name, known.iter().copied());
        if let Some(meant) = meant.and_then(|meant| known.iter().find(|it| **it == meant)) {
            // Where both are there, the other one is the chart's.
            if value.get(*meant).is_none() {
                wrong.push((path.clone(), name.clone(), meant));
            }
        }
    }
}
