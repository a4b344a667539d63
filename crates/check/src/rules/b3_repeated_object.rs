//! # One Application renders an object twice
//!
//! Two files of a folder, two templates of a chart or two sources of one Application hold an object of the
//! same kind, namespace and name. The engine keeps the last and leaves the other out: what stands in the
//! first alone – a key of a Secret, a port, a rule – is never in the cluster. The sync succeeds, and the
//! Application only bears a warning.
//!
//! People see: `RepeatedResourceWarning: Resource /Secret/shop/creds appeared 2 times among application
//! resources.`, and a pod that misses a key which is in Git.
//!
//! Two that say the same are left out, and so are hooks.
//!
//! ## Bad
//! ```yaml
//! # user.yaml
//! kind: Secret
//! metadata: {name: creds}
//! stringData: {user: shop}
//! ---
//! # password.yaml
//! kind: Secret
//! metadata: {name: creds}
//! stringData: {password: change-me}
//! ```
//! ## Good
//! ```yaml
//! kind: Secret
//! metadata: {name: creds}
//! stringData: {user: shop, password: change-me}
//! ```
//! ## When to suppress
//! Never: join the two, or give one of them another name.

use std::collections::BTreeMap;

use tiphys_diag::Severity;
use tiphys_graph::Object;
use tiphys_value::{ObjectExt, ResourceKey};

use crate::{
    Context, Report, Rule,
    support::{dedup::Once, placeholders},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "B3-repeated-object",
    incident: "B3",
    severity: Severity::Warning,
    title: "one object twice in the rendered set of one Application",
    page: page!("b3_repeated_object.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let mut once = Once::default();
    for app in &survey.apps {
        let mut seen: BTreeMap<&ResourceKey, &Object> = BTreeMap::new();
        for object in survey.objects_of(app.id).filter(|it| is_relevant(it)) {
            let Some(first) = seen.insert(&object.key, object) else { continue };
            if first.value() != object.value() {
                add(context, app.name(), (first, object), &mut once);
            }
        }
    }
    once.report(report);
}

fn is_relevant(object: &Object) -> bool {
    // Two Applications of one name are D2-duplicate-name's.
    object.key.group != tiphys_model::names::GROUP
        && object.hooks.is_empty()
        && !object.key.name.is_empty()
        && !placeholders::is_in(&object.key.name)
        && !placeholders::is_in(&object.key.namespace)
        && object.value().annotation(tiphys_model::names::HELM_HOOK).is_none()
}

fn add(context: &Context<'_>, app: &str, (first, last): (&Object, &Object), once: &mut Once) {
    let message = format!("Application {app} renders {} twice, and the two differ", last.title());
    let diagnostic = RULE
        .diagnostic(message)
        .at(context.survey.start(last), "this one is applied")
        .see(context.survey.start(first), "this one is left out")
        .because("of objects of one kind, namespace and name the engine keeps the last, and syncs without an error")
        .help("join the two, or give one of them another name");
    once.add(&last.title(), RULE.finding(context, last, diagnostic));
}
