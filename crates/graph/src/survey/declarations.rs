//! The files of a repository and what stands in them, before anything is rendered.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use tiphys_appset::ClusterInfo;
use tiphys_model::names;
use tiphys_value::{ObjectExt, RenderedObject, Value};
use tiphys_vfs::FileTree;

use super::{
    Files, Input, Kept, StatedSettings, application_sets,
    discover::{self, Manifests, Parsed},
    files::Texts,
    repository_copies::{self, Adoption},
    used,
};

/// The files of a repository and what stands in them: what every reading of it begins with.
pub struct Declarations {
    pub(super) files: Arc<Files>,
    pub(super) manifests: Manifests,
    /// What the files say of how sources are rendered.
    pub settings: StatedSettings,
}

impl Declarations {
    /// Reads the files of a folder of a tree.
    pub fn read(tree: Arc<dyn FileTree>, folder: &str) -> Self {
        Self::knowing(tree, folder, Texts::new(), &HashMap::new())
    }

    /// The same, of which something may be known.
    pub(super) fn knowing(
        tree: Arc<dyn FileTree>,
        folder: &str,
        texts: Texts,
        parsed: &HashMap<Arc<str>, Arc<Parsed>>,
    ) -> Self {
        let files = Files::list_knowing(tree, folder, texts);
        let manifests = discover::read(&files, parsed);
        let settings = StatedSettings::read(&files, &manifests, folder);
        Self { files: Arc::new(files), manifests, settings }
    }

    /// The Applications and ApplicationSets in files.
    pub fn declared(&self) -> impl Iterator<Item = &Value> {
        self.manifests.objects.iter().map(|it| &it.value).filter(|it| declares(it))
    }

    /// The clusters that Secrets in files declare.
    pub fn clusters(&self) -> Vec<ClusterInfo> {
        application_sets::clusters(self.manifests.objects.iter().map(Arc::as_ref))
    }

    /// The addresses of Git repositories that are named in files, and how many of the paths under each are in
    /// a tree.
    pub fn named_in(&self, tree: &dyn FileTree) -> BTreeMap<String, usize> {
        repository_copies::paths_here(self.declared(), tree)
    }

    /// Which addresses are taken to mean the repository, by what is declared in files and elsewhere.
    pub fn adoption(&self, elsewhere: &[Value], is_given: &dyn Fn(&str) -> bool) -> Adoption {
        repository_copies::addresses(
            elsewhere.iter().chain(self.declared()),
            self.files.tree().as_ref(),
            is_given,
        )
    }

    /// What a survey need not read again.
    pub fn to_keep(&self) -> Kept {
        Kept { texts: self.files.all_texts(), manifests: self.manifests.parsed.clone(), ..Kept::default() }
    }

    /// The objects of concern other than Applications and ApplicationSets.
    pub(super) fn others(&self, input: &Input<'_>, leaves_out: bool) -> Vec<Arc<RenderedObject>> {
        let others = self.manifests.objects.iter().filter(|it| is_of_concern(&it.value)).cloned();
        match input.options.only_used {
            true => used::used(others.collect(), input.folder, leaves_out),
            false => others.collect(),
        }
    }
}

/// Whether an object declares Applications.
pub(super) fn declares(object: &Value) -> bool {
    object.api_version() == names::API_VERSION && matches!(object.kind(), "Application" | "ApplicationSet")
}

/// Whether an object is of concern beside Applications: a project, the Secret of a cluster.
pub(super) fn is_of_concern(object: &Value) -> bool {
    object.api_version() == names::API_VERSION && object.kind() == "AppProject"
        || object.kind() == "Secret" && object.label(names::SECRET_TYPE) == Some("cluster")
}
