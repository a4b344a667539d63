//! # A Flux Kustomization builds the folder that it is declared in
//!
//! What a Kustomization builds it owns. One that lies in its own folder, and is brought by another one
//! already, owns itself: its target namespace, labels and patches change its own manifest, the two take it
//! from each other at each look, and what lies deeper in the folder comes without being listed.
//!
//! People see: a Kustomization whose namespace or labels change for ever, one in two namespaces, or
//! `Kustomization/web is managed by another`.
//!
//! ## Bad
//! ```yaml
//! # apps/web/ks.yaml
//! spec: {path: ./apps/web}
//! ```
//! ## Good
//! ```yaml
//! # apps/web/ks.yaml
//! spec: {path: ./apps/web/app}
//! ```
//! ## When to suppress
//! Where it is the entry of a cluster, which nothing else brings.

use std::collections::BTreeMap;

use tiphys_diag::Severity;
use tiphys_graph::{App, Object};
use tiphys_value::ObjectExt;

use crate::{
    Context, Finding, Report, Rule,
    support::{dedup::Once, field_paths::keys, flux::built_folder},
};

/// See the module.
pub const RULE: Rule = Rule {
    id: "D2-flux-self",
    incident: "D2",
    severity: Severity::Warning,
    title: "a Flux Kustomization builds the folder that it is declared in",
    page: page!("d2_flux_self.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let Some(flux) = context.survey.flux.as_deref() else { return };
    let mut bringers: BTreeMap<(&str, &str), Vec<(&App, &Object)>> = BTreeMap::new();
    for app in flux.apps.iter().filter(|app| app.is_rendered()) {
        for object in flux.objects_of(app.id).filter(|it| built_folder(it).is_some()) {
            let at = object.rendered.location.file.as_ref();
            bringers.entry((at, object.value().name())).or_default().push((app, object));
        }
    }
    let mut once = Once::default();
    // The entry that `flux bootstrap` writes is its own to own.
    for ((file, name), brought) in bringers.iter().filter(|((_, name), _)| *name != "flux-system") {
        let is_itself = |app: &App| app.name() == *name && app.declared.location.file.as_ref() == *file;
        let Some((_, object)) = brought.iter().find(|(app, _)| is_itself(app)) else { continue };
        let Some((other, _)) = brought.iter().find(|(app, _)| !is_itself(app)) else { continue };
        let Some(folder) = built_folder(object) else { continue };
        let diagnostic = RULE
            .diagnostic(format!("{} builds {folder}, where it is declared itself", object.title()))
            .at(flux.span(object, &keys(&["spec", "path"])), "its own manifest lies in this folder")
            .because(format!(
                "Kustomization {} brings it already: both own it, and each changes it back",
                other.name()
            ))
            .help("build a folder below, with what is meant and without this manifest");
        let finding = Finding::new(RULE.incident, diagnostic).app(*name).object(object.title());
        once.add(name, finding.likely());
    }
    once.report(report);
}
