//! What Flux does to the objects of a repository before it applies them.

use tiphys_graph::{Object, Owner, Survey, is_of_flux};
use tiphys_value::ObjectExt;
use tiphys_vfs::{is_below, join, normalize};

use super::placeholders;

/// The folder that a Kustomization of Flux builds; `None` of anything else, and where somebody has still to
/// say it.
pub(crate) fn built_folder(object: &Object) -> Option<String> {
    let is_kustomization =
        object.key.group == "kustomize.toolkit.fluxcd.io" && object.key.kind == "Kustomization";
    let path = object.value().str_at(&["spec", "path"]).filter(|_| is_kustomization)?;
    // `${BASE}/../apps` is `apps` only as long as nobody says what the base is.
    let path = Some(path).filter(|path| !placeholders::is_in(path))?;
    normalize(path.trim_start_matches('/')).ok().filter(|path| !path.is_empty())
}

/// What a repository tells Flux to build; gathered once, as it is asked for every object.
pub(crate) struct Flux {
    /// The texts of the patches of its Kustomizations; `None` if nothing tells Flux what to build.
    patches: Option<Vec<String>>,
    /// The folders to whose objects it gives a namespace, and that one.
    targets: Vec<(String, String)>,
}

impl Flux {
    /// Gathers it.
    pub(crate) fn from_survey(survey: &Survey) -> Self {
        let mut patches = None;
        let mut targets = Vec::new();
        for object in survey.objects.iter().filter(|object| is_of_flux(object.value())) {
            let own = object.value()["spec"]["patches"].as_array();
            let texts = own.into_iter().flatten().map(ToString::to_string);
            patches.get_or_insert_with(Vec::new).extend(texts);
            let text = |path: &[&str]| object.value().str_at(path);
            let folder = text(&["spec", "path"]).and_then(|path| join("", path).ok());
            if let (Some(folder), Some(namespace)) = (folder, text(&["spec", "targetNamespace"])) {
                targets.push((folder, namespace.to_owned()));
            }
        }
        Self { patches, targets }
    }

    /// Whether Flux applies an object: nothing of Argo CD's reaches it, and the repository tells Flux what to
    /// build.
    pub(crate) fn applies(&self, object: &Object) -> bool {
        self.patches.is_some() && matches!(object.owner, Owner::Unit(_))
    }

    /// Whether Flux puts an object into another namespace than its manifest says.
    pub(crate) fn moves(&self, object: &Object) -> bool {
        let own = object.value().str_at(&["metadata", "namespace"]).unwrap_or_default();
        let file = object.rendered.location.file.as_ref();
        self.targets.iter().any(|(folder, namespace)| is_below(file, folder) && namespace != own)
    }

    /// Whether a patch of Flux may give objects of a kind a field, or a part of it.
    pub(crate) fn may_give(&self, object: &Object, field: &str) -> bool {
        let mut patches = self.patches.iter().flatten();
        patches.any(|patch| patch.contains(&object.key.kind) && patch.contains(field))
    }

    /// Whether Flux may complete objects of a kind: a Kustomization holds a patch that names it.
    pub(crate) fn completes(&self, object: &Object) -> bool {
        // A patch may add patches to other Kustomizations, so that its own target says little.
        let mut patches = self.patches.iter().flatten();
        self.applies(object) && patches.any(|patch| patch.contains(&object.key.kind))
    }
}
