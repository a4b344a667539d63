//! # Two Applications render one object
//!
//! Two Applications of one cluster want the same object. Each applies its own version and marks the
//! object as its own, so that the other is OutOfSync for ever; with self-heal they overwrite each other
//! without end, and where one of them prunes, the object is deleted under the other.
//!
//! People see: `SharedResourceWarning: ConfigMap/settings is part of applications argocd/a and b`.
//!
//! ## Bad
//! ```yaml
//! # apps/a.yaml and apps/b.yaml
//! spec: {source: {path: shared}}
//! ```
//! ## Good
//! One Application renders the object; the other one comes in a later wave and relies on it.
//!
//! ## When to suppress
//! Never for objects with content. Two Applications may both declare an empty Namespace when neither prunes it.

use std::collections::BTreeMap;

use tiphys_diag::Severity;
use tiphys_graph::{Object, Owner};
use tiphys_value::ResourceKey;

use crate::{Context, Report, Rule};

/// See the module.
pub const RULE: Rule = Rule {
    id: "B3-two-owners",
    incident: "B3",
    severity: Severity::Error,
    title: "one object in the rendered sets of two Applications",
    source: include_str!("b3_two_owners.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let mut first: BTreeMap<(usize, &str, &ResourceKey), &Object> = BTreeMap::new();
    for object in &context.survey.objects {
        let (Some(environment), Owner::App(_)) = (object.environment, object.owner) else { continue };
        let place = (environment.0, object.cluster.as_ref(), &object.key);
        let Some(earlier) = first.get(&place) else {
            first.insert(place, object);
            continue;
        };
        if earlier.owner == object.owner {
            continue;
        }
        let (Some(one), Some(other)) = (context.survey.app_of(earlier), context.survey.app_of(object)) else {
            continue;
        };
        let message = format!(
            "{} is rendered by Application {} and by Application {}",
            object.title(),
            one.name(),
            other.name()
        );
        let diagnostic = RULE
            .diagnostic(message)
            .at(context.survey.start(object), format!("{} renders it here", other.name()))
            .see(context.survey.start(earlier), format!("{} renders it here", one.name()))
            .because("each of the two marks the object as its own, and finds it OutOfSync once the other has applied it")
            .help("render it in one of the two only");
        report.add(RULE.finding(context, object, diagnostic));
    }
}
