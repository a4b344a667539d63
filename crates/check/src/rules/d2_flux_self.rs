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
use tiphys_graph::{Files, is_of_flux};
use tiphys_kustomize::FILE_NAMES;
use tiphys_value::Value;
use tiphys_vfs::{base_name, is_below, join, parent};

use crate::{
    Context, Report, Rule,
    support::{dedup::Once, field_paths::keys, kustomization_entries, pods::list},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-flux-self",
    incident: "D2",
    severity: Severity::Warning,
    title: "a Flux Kustomization builds the folder that it is declared in",
    page: page!("d2_flux_self.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let listed = listed_files(&survey.files);
    let mut once = Once::default();
    for object in survey.objects.iter().filter(|it| is_of_flux(it.value())) {
        let Some(folder) = survey.flux_sources.folder(object.value()).filter(|it| !it.is_empty()) else {
            continue;
        };
        let file = object.rendered.location.file.as_ref();
        // Where a kustomization lists what is built, the manifest is no part of it.
        let is_bare = kustomization_entries::of_folder(&survey.files, &folder).next().is_none();
        let Some(lister) = listed.get(file).filter(|it| !is_below(it, &folder) && is_bare) else { continue };
        if !is_below(file, &folder) {
            continue;
        }
        let diagnostic = RULE
            .diagnostic(format!("{} builds {folder}, where it is declared itself", object.title()))
            .at(survey.span(object, &keys(&["spec", "path"])), "its own manifest lies in this folder")
            .because(format!("{lister} brings it already: both own it, and each changes it back"))
            .help("build a folder below, with what is meant and without this manifest");
        once.add(&folder, RULE.finding(context, object, diagnostic).likely());
    }
    once.report(report);
}

/// The files that kustomizations list, each with one that does.
fn listed_files(files: &Files) -> BTreeMap<String, String> {
    let mut listed = BTreeMap::new();
    for path in files.paths().filter(|path| FILE_NAMES.contains(&base_name(path))) {
        let Some(content) = files.value(path) else { continue };
        for entry in list(&content, "resources").iter().filter_map(Value::as_str) {
            if let Ok(file) = join(parent(path).unwrap_or_default(), entry) {
                listed.insert(file, path.to_string());
            }
        }
    }
    listed
}
