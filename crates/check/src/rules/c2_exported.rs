//! # An exported object
//!
//! The manifest was read from a cluster (`kubectl get -o yaml`) and has fields that only an API server sets:
//! `uid`, `resourceVersion`, `managedFields`, `creationTimestamp`. Tiphys drops them. `kubectl apply` drops
//! some of them, and a `resourceVersion` fails every later apply with a conflict; server-side apply refuses
//! `managedFields` and a foreign `uid`.
//!
//! People see: `metadata.managedFields must be nil`, `uid mismatch`, `the object has been modified; please
//! apply your changes to the latest version and try again`.
//!
//! ## Bad
//! ```yaml
//! metadata: {name: settings, uid: 0b9b2f0e-3c5f-4d1c-9a6f-0d5d3c1b2a3f, resourceVersion: "12345"}
//! ```
//! ## Good
//! ```yaml
//! metadata: {name: settings}
//! ```
//! ## When to suppress
//! Where other programs read the files and need the fields.

use tiphys_diag::Severity;
use tiphys_value::Value;

use crate::{
    Context, Report, Rule,
    support::{dedup::Once, field_paths::keys},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "C2-exported",
    incident: "C2",
    severity: Severity::Info,
    title: "a manifest that was read from a cluster",
    page: page!("c2_exported.rs"),
    check,
};

/// Metadata that only an API server sets. Generators write a `creationTimestamp` that is null, which means
/// nothing.
const SERVER_SET: [&str; 5] = ["uid", "resourceVersion", "managedFields", "creationTimestamp", "selfLink"];

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for object in &context.survey.objects {
        let metadata = &object.value()["metadata"];
        let found: Vec<&str> =
            SERVER_SET.into_iter().filter(|field| metadata.get(field).is_some_and(says_something)).collect();
        let Some(first) = found.first() else { continue };
        let diagnostic = RULE
            .diagnostic(format!(
                "{} has fields of the cluster that it was read from: {}",
                object.title(),
                found.join(", ")
            ))
            .at(context.survey.span(object, &keys(&["metadata", first])), "only an API server sets this")
            .because("Tiphys drops them; `kubectl apply` fails on some of them at the next change")
            .help("take them out of the manifest");
        once.add("", RULE.finding(context, object, diagnostic));
    }
    once.report(report);
}

fn says_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    }
}
