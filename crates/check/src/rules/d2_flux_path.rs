//! # A Flux Kustomization builds a folder that is not there
//!
//! `spec.path` counts from the root of the Git repository. A folder that was moved or misspelt is noticed
//! only when the Kustomization is reconciled: it fails, and whatever waits for it waits on.
//!
//! People see: `kustomization path not found: stat /tmp/kustomization-…/cluster/apps/…: no such file or
//! directory`.
//!
//! ## Bad
//! ```yaml
//! path: ./cluster/apps/web/base          # the folder is cluster/apps/shop/web/base
//! ```
//! ## Good
//! ```yaml
//! path: ./cluster/apps/shop/web/base
//! ```
//! ## When to suppress
//! Where the folder is on the branch or in the repository that the source reads, and not here.

use tiphys_diag::{Severity, similar_names};
use tiphys_graph::{Object, is_of_flux};
use tiphys_value::ObjectExt;
use tiphys_vfs::{join, normalize};

use crate::{
    Context, Report, Rule,
    support::{dedup::Once, field_paths::keys, flux::built_folder, placeholders, unused_files},
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "D2-flux-path",
    incident: "D2",
    severity: Severity::Warning,
    title: "a Flux Kustomization builds a folder that is not there",
    page: page!("d2_flux_path.rs"),
    check,
};

fn check(context: &Context<'_>, report: &mut Report) {
    let survey = context.survey;
    let mut once = Once::default();
    for object in &survey.objects {
        let Some(path) = survey.flux_sources.folder(object.value()) else { continue };
        // `${BASE}/../apps` is `apps` only as long as nobody says what the base is.
        let is_open = object.value().str_at(&["spec", "path"]).is_none_or(placeholders::is_in);
        if !is_open
            && !path.is_empty()
            && !is_here(context, &path)
            && !unused_files::is_git_ignored(&survey.files, &path)
        {
            once.add(&path, missing(context, object, &path));
        }
    }
    // All of them are wrong in one way: the uppermost stands for the others.
    let of_flux = survey.objects.iter().filter(|it| is_of_flux(it.value()));
    let moved = of_flux.filter_map(|it| Some((it, moved_below(context, it)?)));
    if let Some((object, (path, moved))) = moved.min_by_key(|(_, (path, _))| path.len()) {
        once.add(&path, below_another(context, object, &path, &moved));
    }
    for object in survey.objects.iter().filter(|it| it.key.kind == "ImageUpdateAutomation") {
        let own = object.value().str_at(&["spec", "update", "path"]);
        let own = own.filter(|path| !placeholders::is_in(path) && is_read_here(context, object));
        let Some(path) = own.and_then(|path| normalize(path.trim_start_matches('/')).ok()) else { continue };
        if !path.is_empty() && !is_here(context, &path) && !unused_files::is_git_ignored(&survey.files, &path)
        {
            once.add(&path, of_automation(context, object, &path));
        }
    }
    once.report(report);
}

/// The folder that a Kustomization of the source that `flux bootstrap` makes builds, where nothing of that
/// source is found from the root of the repository: the one folder that ends so, and has the manifest in it
/// or beside.
fn moved_below(context: &Context<'_>, object: &Object) -> Option<(String, String)> {
    let survey = context.survey;
    let source = object.value().str_at(&["spec", "sourceRef", "name"])?;
    let path = built_folder(object).filter(|_| source == "flux-system")?;
    let file = object.rendered.location.file.as_ref();
    let is_open = survey.flux_sources.start("GitRepository", source).is_some();
    let first = path.split('/').next().unwrap_or_default();
    if is_open || survey.files.has_folder(first) || unused_files::is_in_unused_folder(file) {
        return None;
    }
    // Where the manifest itself lies below a folder of the name, that one was moved with it.
    let at = format!("/{file}").find(&format!("/{first}/")).filter(|at| *at > 0)?;
    let moved = join(&file[..at], &path).ok()?;
    survey.files.has_folder(&moved).then_some((path, moved))
}

fn below_another(context: &Context<'_>, object: &Object, path: &str, moved: &str) -> crate::Finding {
    let diagnostic = RULE
        .diagnostic(format!("{} builds {path}, which is not in the repository", object.title()))
        .at(context.survey.span(object, &keys(&["spec", "path"])), "there is no such folder")
        .because("kustomization path not found: the path counts from the root of the repository")
        .help(format!("write ./{moved}"));
    RULE.finding(context, object, diagnostic).likely()
}

/// Whether an automation writes to this repository: the Kustomizations that build folders of it read the same
/// source, or it names a file in a folder that is here.
fn is_read_here(context: &Context<'_>, object: &Object) -> bool {
    let name = object.value().str_at(&["spec", "sourceRef", "name"]).unwrap_or_default();
    let path = object.value().str_at(&["spec", "update", "path"]).unwrap_or_default();
    let is_in_folder = [".yaml", ".yml"].iter().any(|end| path.ends_with(end))
        && normalize(path.trim_start_matches('/')).is_ok_and(|path| {
            path.rsplit_once('/').is_some_and(|(folder, _)| context.survey.files.has_folder(folder))
        });
    is_in_folder || context.survey.flux_sources.start("GitRepository", name).is_some()
}

fn of_automation(context: &Context<'_>, object: &Object, path: &str) -> crate::Finding {
    let diagnostic = RULE
        .diagnostic(format!("{} updates images below {path}, which is not in the repository", object.title()))
        .at(context.survey.span(object, &keys(&["spec", "update", "path"])), "there is no such folder")
        .because("no file of it is ever changed: new images are not taken");
    RULE.finding(context, object, diagnostic).likely()
}

fn is_here(context: &Context<'_>, path: &str) -> bool {
    let files = &context.survey.files;
    files.has_folder(path) || files.contains(path)
}

fn missing(context: &Context<'_>, object: &Object, path: &str) -> crate::Finding {
    let mut diagnostic = RULE
        .diagnostic(format!("{} builds {path}, which is not in the repository", object.title()))
        .at(context.survey.span(object, &keys(&["spec", "path"])), "there is no such folder")
        .because("kustomization path not found: it is never reconciled, and what waits for it is not either");
    let (above, last) = path.rsplit_once('/').unwrap_or(("", path));
    let beside = context.survey.files.tree().read_dir(above).unwrap_or_default();
    let names: Vec<String> = beside.into_iter().map(|entry| entry.name).collect();
    let Some(nearest) = similar_names::nearest_slip(last, names.iter().map(String::as_str)) else {
        return RULE.finding(context, object, diagnostic).likely();
    };
    diagnostic = diagnostic.help(format!("there is {nearest} beside it"));
    RULE.finding(context, object, diagnostic).likely().with_spelling(last, nearest)
}
