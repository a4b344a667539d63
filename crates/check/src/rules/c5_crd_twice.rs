//! # Two Applications bring one definition
//!
//! The same CustomResourceDefinition comes with a chart and with a central folder, or with two charts. If
//! the two differ, each Application puts its own version in place of the other's, without end; and when one
//! of the two is deleted or prunes it, all custom resources of that kind are deleted, also those of the other.
//!
//! People see: `SharedResourceWarning: CustomResourceDefinition/… is part of applications argocd/a and b`,
//! and an Application that is never Synced.
//!
//! ## Bad
//! ```yaml
//! # Application crds renders certificates.cert-manager.io
//! # Application cert-manager renders it too: crds.enabled=true
//! ```
//! ## Good
//! One of the two leaves the definitions out: `helm.skipCrds: true`, `crds.enabled: false`.
//!
//! ## When to suppress
//! When both come from one source at one revision, and neither prunes.

use std::collections::BTreeMap;

use tiphys_diag::Severity;
use tiphys_graph::{AppId, Object, Owner};

use crate::{Context, Report, Rule};

/// See the module.
pub const RULE: Rule = Rule {
    id: "C5-crd-twice",
    incident: "C5",
    severity: Severity::Error,
    title: "one CustomResourceDefinition in the rendered sets of two Applications",
    source: include_str!("c5_crd_twice.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let index = &context.analyses().edges.index;
    let mut first: BTreeMap<(usize, &str), &Object> = BTreeMap::new();
    let mut pairs: BTreeMap<(AppId, AppId), Vec<(&Object, &Object)>> = BTreeMap::new();
    let definitions = context.survey.objects.iter().filter(|it| it.key.kind == "CustomResourceDefinition");
    for object in definitions {
        let Owner::App(own) = object.owner else { continue };
        let earlier = *first.entry((index.scope(object.id), &object.key.name)).or_insert(object);
        match earlier.owner {
            Owner::App(other) if other != own => {
                pairs.entry((other, own)).or_default().push((earlier, object))
            }
            _ => {}
        }
    }
    for ((one, other), twice) in pairs {
        let (earlier, object) = twice[0];
        let (one, other) = (context.survey.app(one).name(), context.survey.app(other).name());
        let more = match twice.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let message = format!(
            "definition {}{more} is brought by Application {one} and by Application {other}",
            object.key.name
        );
        let same = twice.iter().all(|(one, other)| one.value() == other.value());
        let mut diagnostic = RULE
            .diagnostic(message)
            .at(context.survey.start(object), format!("{other} renders it here"))
            .see(context.survey.start(earlier), format!("{one} renders it here"))
            .because("each puts its version in place of the other's; when one is deleted, all resources of the kind go with it")
            .help("leave the definitions out in one of the two, such as with `helm.skipCrds: true`");
        if same {
            diagnostic.severity = Severity::Warning;
        }
        report.add(RULE.finding(context, object, diagnostic));
    }
}
