//! What a survey says, and how to find one's way in it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, OnceLock},
};

use tiphys_model::{ArgoSettings, settings::RenderSettings};
use tiphys_value::{RenderedObject, ResourceKey};

use super::{
    files::Files,
    flux, index,
    notice::Notice,
    revision::Revision,
    settings::{self, StatedSettings},
    types::{
        App, AppId, Declaration, Environment, Object, ObjectId, Owner, Root, Set, Unit, UnitKind,
        UnreadableExpression, UnreadableFile, Unseen, UnsetVariable,
    },
};
use crate::tools::{LazyTools, Tools};

/// What a repository says as a whole.
pub struct Survey {
    /// Its files.
    pub files: Arc<Files>,
    /// Groups of Applications that run side by side; a name is unique in each.
    pub environments: Vec<Environment>,
    /// The declarations that nothing renders.
    pub roots: Vec<Root>,
    /// The environments that stand side by side, of which one is chosen to run, each with the names of those
    /// that it consists of; one alone, or none, if all run together.
    pub choices: BTreeMap<String, BTreeSet<String>>,
    /// Why the environment that was asked for is not there.
    pub no_environment: Option<String>,
    /// Every Application of every environment.
    pub apps: Vec<App>,
    /// The ApplicationSets that were found.
    pub sets: Vec<Set>,
    /// Charts, kustomizations and manifests that no Application reaches.
    pub units: Vec<Unit>,
    /// Every rendered object, and every object in manifests that nothing renders.
    pub objects: Vec<Object>,
    /// Manifest files that cannot be read.
    pub faults: Vec<UnreadableFile>,
    /// What is named but could not be had.
    pub unseen: Vec<Unseen>,
    /// The AppProjects and the Secrets of clusters in files, and in what no Application reaches.
    pub others: Vec<Arc<RenderedObject>>,
    /// What the files say of how sources are rendered.
    pub settings: StatedSettings,
    /// What is left out, or taken otherwise than it stands.
    pub notices: Vec<Notice>,
    /// Addresses that nobody said mean this repository, but that were taken to.
    pub adopted: BTreeSet<String>,
    /// Of the revisions of this repository that Applications name, by address and revision, those that what
    /// is at hand does not stand for. Whoever can read them puts them here.
    pub revisions: BTreeMap<(String, String), Revision>,
    /// The branch that is checked out, where that is known. Whoever can read it puts it here.
    pub branch: Option<String>,
    /// Read when it is asked for.
    pub(super) tools: Arc<OnceLock<Tools>>,
    /// Version of the destination clusters, such as `v1.36.1`; empty if it is not told.
    pub kube_version: String,
    /// The clusters that Flux fills, each Kustomization and HelmRelease read as the Application that renders
    /// the same; `None` if there are none, or Applications fill the same ones.
    pub flux: Option<Box<Survey>>,
    /// Which of the sources that Flux reads are this repository.
    pub flux_sources: flux::Sources,
    /// Whether its Applications stand for Kustomizations and HelmReleases of Flux.
    pub is_of_flux: bool,
    /// The variables in what Flux builds that become nothing; of each Kustomization each once.
    pub unset_variables: Vec<UnsetVariable>,
    /// The expressions in what Flux builds that it cannot read.
    pub unreadable_expressions: Vec<UnreadableExpression>,
    pub(crate) index: OnceLock<index::Index>,
}

impl Survey {
    /// The files that anything reads which was rendered, and those that declare something.
    pub fn files_read(&self) -> BTreeSet<&str> {
        let mut read: BTreeSet<&str> = BTreeSet::new();
        let of_units = self.units.iter().filter(|unit| unit.kind != UnitKind::Manifest);
        let objects = of_units.flat_map(|unit| &unit.objects).map(|id| &self.object(*id).read);
        let all = self.apps.iter().map(|app| &app.read).chain(objects);
        let mut seen: BTreeSet<*const BTreeSet<Arc<str>>> = BTreeSet::new();
        for files in all.filter(|files| seen.insert(Arc::as_ptr(files))) {
            read.extend(files.iter().map(AsRef::as_ref));
        }
        let declared = self.roots.iter().map(|root| &root.declared.location);
        let sets = self.sets.iter().map(|set| &set.declared.location);
        let others = self.others.iter().chain(&self.settings.config_maps).map(|it| &it.location);
        read.extend(declared.chain(sets).chain(others).map(|location| location.file.as_ref()));
        read
    }

    /// What a rendered `argocd-cm` says of the renderers, if there is exactly one.
    pub(super) fn rendered_settings(&self) -> Option<RenderSettings> {
        let mut found = self.rendered_config_maps().filter(|object| object.value().get("data").is_some());
        let only = found.next().filter(|_| found.next().is_none())?;
        Some(ArgoSettings::from_objects(Some(only.value()), None).rendering)
    }

    /// Every `argocd-cm` that an Application renders.
    pub fn rendered_config_maps(&self) -> impl Iterator<Item = &Object> {
        let rendered = self.objects.iter().filter(|object| matches!(object.owner, Owner::App(_)));
        rendered.filter(|object| settings::is_config_map(object.value()))
    }

    /// What the other tools of the repository say.
    pub fn tools(&self) -> &Tools {
        self.tools.get_or_init(|| Tools::from_files(&self.files))
    }

    /// As [`Self::tools`], for whoever may never ask.
    pub fn lazy_tools(&self) -> LazyTools {
        LazyTools { files: self.files.clone(), read: self.tools.clone() }
    }

    /// An Application.
    pub fn app(&self, id: AppId) -> &App {
        &self.apps[id.0]
    }

    /// An object.
    pub fn object(&self, id: ObjectId) -> &Object {
        &self.objects[id.0]
    }

    /// The objects of an Application, in the order in which it renders them.
    pub fn objects_of(&self, app: AppId) -> impl Iterator<Item = &Object> {
        self.app(app).objects.iter().map(|id| self.object(*id))
    }

    /// The Application that nothing renders on whose account an Application exists; itself if there is none.
    /// What an ApplicationSet yields is its own root.
    pub fn root_of<'a>(&'a self, app: &'a App) -> &'a App {
        let mut root = app;
        // Declarations lead upwards to Applications that were found before, so that this ends.
        while let Declaration::App(parent) = root.declaration {
            root = self.app(parent);
        }
        root
    }

    /// Whether an Application, or one above it, is generated for clusters that only the installation knows.
    pub fn is_symbolic(&self, app: &App) -> bool {
        matches!(self.root_of(app).declaration, Declaration::Set(set) if self.sets[set.0].symbolic)
    }

    /// Whether two Applications are sure to exist side by side: they have one root, or their roots are
    /// declared in one folder. Others may be two generations of a repository of which one is not applied any
    /// more.
    pub fn is_side_by_side(&self, one: &App, other: &App) -> bool {
        let (one, other) = (self.root_of(one), self.root_of(other));
        let folder = |app: &App| tiphys_vfs::parent(&app.declared.location.file).map(str::to_owned);
        one.id == other.id || folder(one) == folder(other)
    }

    /// The Application that an object belongs to, if it is not unreachable.
    pub fn app_of(&self, object: &Object) -> Option<&App> {
        match object.owner {
            Owner::App(id) => Some(self.app(id)),
            Owner::Unit(_) => None,
        }
    }

    /// The objects that would live in the same cluster as `object`, itself included.
    pub fn neighbours<'a>(&'a self, object: &'a Object) -> impl Iterator<Item = &'a Object> {
        let world = object.world();
        self.objects.iter().filter(move |other| other.world() == world)
    }

    /// The objects of one key that would live in the same cluster as `object`.
    pub fn find<'a>(&'a self, object: &'a Object, key: &'a ResourceKey) -> impl Iterator<Item = &'a Object> {
        self.with_key(key).filter(move |other| other.lives_with(object))
    }
}
