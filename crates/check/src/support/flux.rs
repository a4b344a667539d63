//! What Flux does to the objects of a repository before it applies them.

use tiphys_graph::{Object, Owner, Survey, is_of_flux};

/// What a repository tells Flux to build; gathered once, as it is asked for every object.
pub struct Flux {
    /// The texts of the patches of its Kustomizations; `None` if nothing tells Flux what to build.
    patches: Option<Vec<String>>,
}

impl Flux {
    /// Gathers it.
    pub fn of(survey: &Survey) -> Self {
        let mut patches = None;
        for object in survey.objects.iter().filter(|object| is_of_flux(object.value())) {
            let own = object.value()["spec"]["patches"].as_array();
            let texts = own.into_iter().flatten().map(ToString::to_string);
            patches.get_or_insert_with(Vec::new).extend(texts);
        }
        Self { patches }
    }

    /// Whether Flux applies an object: nothing of Argo CD's reaches it, and the repository tells Flux what to build.
    pub fn applies(&self, object: &Object) -> bool {
        self.patches.is_some() && matches!(object.owner, Owner::Unit(_))
    }

    /// Whether Flux may complete objects of a kind: a Kustomization holds a patch that names it.
    pub fn completes(&self, object: &Object) -> bool {
        // A patch may add patches to other Kustomizations, so that its own target says little.
        let mut patches = self.patches.iter().flatten();
        self.applies(object) && patches.any(|patch| patch.contains(&object.key.kind))
    }
}
