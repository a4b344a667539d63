//! Files that nothing renders: whether they are whole objects, or parts of some.

use tiphys_graph::{App, Declaration, Object, Owner, Set, Survey, UnitKind};

use super::{kustomization_entries, sync_options};

/// Whether an object stands in a file that nothing renders. What declares Applications is followed from
/// there, and is no part of anything.
pub(crate) fn is_loose(survey: &Survey, object: &Object) -> bool {
    let declares = object.key.group == tiphys_model::names::GROUP && object.key.kind.starts_with("App");
    !declares && in_a_file(survey, object)
}

/// Whether an object stands in a file that nothing renders, whatever it declares.
pub(crate) fn is_loose_file(survey: &Survey, object: &Object) -> bool {
    in_a_file(survey, object)
}

fn in_a_file(survey: &Survey, object: &Object) -> bool {
    matches!(object.owner, Owner::Unit(unit) if survey.units[unit.0].kind == UnitKind::Manifest)
}

/// Whether a kustomization names a file beside it among its resources.
fn lists(survey: &Survey, kustomization: &str, name: &str) -> bool {
    let content = survey.files.value(kustomization).unwrap_or_default();
    let resources = content.get("resources").and_then(tiphys_value::Value::as_array);
    resources
        .into_iter()
        .flatten()
        .any(|it| it.as_str().is_some_and(|it| it.trim_start_matches("./") == name))
}

/// Whether it is known what the Applications of a repository reach: there are some that render what is in it,
/// and none that only the installation knows.
pub(crate) fn is_reach_known(survey: &Survey) -> bool {
    let is_open = |it: &Set| it.symbolic || it.unseen;
    survey.apps.iter().any(App::is_rendered)
        && survey.apps.iter().all(|app| app.is_rendered() || is_of_charts(app))
        && !survey.sets.iter().any(is_open)
}

/// Whether an Application takes nothing but charts from elsewhere, so that it reaches no folder.
fn is_of_charts(app: &App) -> bool {
    app.application.spec.effective_sources().iter().all(|source| source.path.is_empty())
}

/// Whether an object comes from a chart that no Application reaches, and so from its default values alone.
pub(crate) fn is_from_unused_chart(survey: &Survey, object: &Object) -> bool {
    matches!(object.owner, Owner::Unit(unit) if survey.units[unit.0].kind == UnitKind::Chart)
}

/// Whether an object comes from the default values of a chart that no Application reaches, itself or through
/// Applications that this chart declares: what everybody has to give is empty in them.
pub(crate) fn is_under_unused_chart(survey: &Survey, object: &Object) -> bool {
    let Owner::App(id) = object.owner else { return is_from_unused_chart(survey, object) };
    let mut top = survey.app(id);
    while let Declaration::App(above) = top.declaration {
        top = survey.app(above);
    }
    matches!(top.declaration, Declaration::Unit(unit) if survey.units[unit.0].kind == UnitKind::Chart)
}

/// Whether a text lacks a part that a value was to give: `web.`, `.example.com`, `a..b`.
pub(crate) fn has_empty_part(text: &str) -> bool {
    text.is_empty() || text.starts_with('.') || text.ends_with(['.', '-']) || text.contains("..")
}

/// Whether a kustomization beside a file has it among its resources.
pub(crate) fn is_listed_resource(survey: &Survey, file: &str) -> bool {
    let (folder, name) = file.rsplit_once('/').unwrap_or(("", file));
    kustomization_entries::of_folder(&survey.files, folder)
        .any(|kustomization| lists(survey, &kustomization, name))
}

/// Whether an object is a part that the engine merges on the server's side into what another writer made: it
/// asks for server-side apply and for no validation (Argo CD docs, "Sync Options", Server-Side Apply).
pub(crate) fn is_merged_in(survey: &Survey, object: &Object) -> bool {
    sync_options::is_on(survey, object, "ServerSideApply")
        && sync_options::has_option(survey, object, "Validate", "false")
}

/// Whether an object has nothing but its metadata: who merges on the server's side adds these to what another
/// made.
pub(crate) fn is_bare(object: &Object) -> bool {
    let keys = object.value().as_object().into_iter().flat_map(|map| map.keys());
    keys.into_iter().all(|key| matches!(key.as_str(), "apiVersion" | "kind" | "metadata"))
}

/// Whether a file that nothing renders may be a patch, or was set aside: a kustomization lies beside it
/// that does not name it, its name says so, or the object is rendered elsewhere.
pub(crate) fn may_be_a_patch(survey: &Survey, object: &Object) -> bool {
    let file = object.rendered.location.file.as_ref();
    let (folder, name) = file.rsplit_once('/').unwrap_or(("", file));
    let is_called_patch = name.contains("patch") || folder.contains("patch");
    if !is_loose(survey, object) {
        // Where a kustomization lists it among its resources, something else applies it as a patch.
        return is_called_patch && matches!(object.owner, Owner::Unit(_));
    }
    is_called_patch
        || kustomization_entries::of_folder(&survey.files, folder).any(|it| !lists(survey, &it, name))
        || survey.is_rendered(&object.key)
}
