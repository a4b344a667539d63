//! What Flux does to the objects of a repository before it applies them.

use tiphys_graph::{Object, Owner, Survey};
use tiphys_value::Value;

/// Whether Flux applies an object: nothing of Argo CD's reaches it, and the repository tells Flux what to build.
pub fn applies(survey: &Survey, object: &Object) -> bool {
    matches!(object.owner, Owner::Unit(_)) && kustomizations(survey).next().is_some()
}

/// Whether Flux may complete objects of a kind: a Kustomization holds a patch that names it.
pub fn completes(survey: &Survey, object: &Object) -> bool {
    // A patch may add patches to other Kustomizations, so that its own target says little.
    let is_for = |patch: &Value| patch.to_string().contains(&object.key.kind);
    let patches = |it: &Object| it.value()["spec"]["patches"].as_array().cloned().unwrap_or_default();
    applies(survey, object) && kustomizations(survey).any(|it| patches(it).iter().any(is_for))
}

/// The objects that tell Flux what to build.
fn kustomizations(survey: &Survey) -> impl Iterator<Item = &Object> {
    survey.objects.iter().filter(|object| {
        object.key.kind == "Kustomization" && object.key.group == "kustomize.toolkit.fluxcd.io"
    })
}
