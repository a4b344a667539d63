//! Reading a repository as the engine would: its Applications wherever they are declared, what every
//! source renders to, what that declares in turn, and what no Application reaches.

mod application_sets;
mod assemble;
mod build;
mod declarations;
mod digest;
mod discover;
mod environment;
mod files;
mod flux;
mod grouping;
mod incremental;
mod index;
mod kinds;
mod local_sources;
mod notice;
mod offline;
mod options;
mod partial_rendering;
mod render_cache;
mod repository_copies;
mod revision;
mod settings;
mod sops;
mod types;
mod units;
mod used;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use tiphys_appset::ClusterInfo;
use tiphys_diag::Span;
use tiphys_model::{ArgoSettings, settings::RenderSettings};
use tiphys_render::Sources;
use tiphys_value::{FieldPath, Location, ObjectExt, OriginKind, RenderedObject, ResourceKey, Value};
use tiphys_vfs::FileTree;

use crate::tools::{LazyTools, Tools};
use files::Texts;
use incremental::Renderings;
use render_cache::Rendering;

pub use application_sets::{ANY_CLUSTER, UNTOLD};
pub use declarations::Declarations;
pub use digest::unmarked;
pub use discover::was_to_declare;
pub use environment::{environment_of, parting as environment_parting};
pub use files::Files;
pub use incremental::Kept;
pub use index::ObjectScope;
pub use kinds::is_namespaced;
pub use notice::Notice;
pub use offline::NoSources;
pub use options::Options;
pub use render_cache::ENGINE_NAMESPACE;
pub use repository_copies::Adoption;
pub use revision::Revision;
pub use settings::{StatedSettings, is_config_map};
pub use tiphys_model::Application;
pub use types::{
    App, AppId, Declaration, DeclaredId, Environment, EnvironmentId, Object, ObjectId, Outcome, Owner, Root,
    Set, SetId, Unit, UnitId, UnitKind, UnreadableFile, Unseen,
};
pub use units::is_of_flux;

/// What a survey is made from.
pub struct Input<'a> {
    /// The files of the repository, from its root.
    pub tree: Arc<dyn FileTree>,
    /// Folder to look in; empty for all of it.
    pub folder: &'a str,
    /// Serves what is not in the repository.
    pub sources: &'a dyn Sources,
    /// Whether an address means this repository.
    pub is_given: &'a (dyn Fn(&str) -> bool + Sync),
    /// Clusters that the generators of ApplicationSets may name, beside those whose Secrets are in the
    /// repository. If there is none at all, each selector is taken to find one.
    pub clusters: Vec<ClusterInfo>,
    /// Version of the destination clusters, such as `v1.36.1`; empty for Helm's own default.
    pub kube_version: &'a str,
    /// Is told how many renderings are done, of how many that are known of.
    pub progress: &'a (dyn Fn(usize, usize) + Sync),
    /// The environment that is looked at, by its name or the end of it, where several stand side by side;
    /// `None` for all of them.
    pub environment: Option<&'a str>,
    /// Settings of the renderers, in place of what the repository says.
    pub settings: Option<RenderSettings>,
    /// How much is looked at, and how.
    pub options: Options,
}

impl Input<'_> {
    /// All of a repository with no other source in reach; every address means it.
    pub fn alone(tree: Arc<dyn FileTree>) -> Self {
        Self {
            tree,
            folder: "",
            sources: &NoSources,
            is_given: &|_| true,
            clusters: Vec::new(),
            kube_version: "",
            progress: &|_, _| {},
            environment: None,
            settings: None,
            options: Options::default(),
        }
    }
}

impl<'a> Input<'a> {
    /// The same with other addresses that mean the repository.
    fn again<'b>(&'b self, is_given: &'b (dyn Fn(&str) -> bool + Sync)) -> Input<'b>
    where
        'a: 'b,
    {
        Input {
            tree: self.tree.clone(),
            is_given,
            clusters: self.clusters.clone(),
            settings: self.settings.clone(),
            ..*self
        }
    }
}

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
    tools: Arc<OnceLock<Tools>>,
    /// Version of the destination clusters, such as `v1.36.1`; empty if it is not told.
    pub kube_version: String,
    /// The clusters that Flux fills, each Kustomization and HelmRelease read as the Application that renders
    /// the same; `None` if there are none, or Applications fill the same ones.
    pub flux: Option<Box<Survey>>,
    /// Which of the sources that Flux reads are this repository.
    pub flux_sources: flux::Sources,
    /// Whether its Applications stand for Kustomizations and HelmReleases of Flux.
    pub is_of_flux: bool,
    pub(crate) index: OnceLock<index::Index>,
}

impl Survey {
    /// Reads a repository.
    pub fn read(input: &Input<'_>) -> Self {
        Self::keeping(input, &Kept::default()).0
    }

    /// Reads a repository of which an earlier survey left something; returns what this one leaves to the
    /// next.
    ///
    /// Unless they are given, the settings of the renderers are those of the repository's own `argocd-cm`, be
    /// it a file or an object that an Application renders.
    pub fn keeping(input: &Input<'_>, kept: &Kept) -> (Self, Kept) {
        let ground =
            Declarations::knowing(input.tree.clone(), input.folder, kept.texts.clone(), &kept.manifests);
        if let Some(settings) = &input.settings {
            return Self::under(input, &ground, settings, kept);
        }
        let stated = ground.settings.rendering();
        let first = kept.settings_for(&stated).unwrap_or(&stated).clone();
        let (mut survey, mut left) = Self::under(input, &ground, &first, kept);
        let holds = survey.rendered_settings().unwrap_or_else(|| stated.clone());
        if holds != first {
            (survey, left) = Self::under(input, &ground, &holds, &left);
        }
        left.settings = Some((stated, holds));
        (survey, left)
    }

    /// Reads a repository under settings of the renderers.
    fn under(
        input: &Input<'_>,
        ground: &Declarations,
        settings: &RenderSettings,
        kept: &Kept,
    ) -> (Self, Kept) {
        let kept = kept.under(settings);
        let left = |renderings: Renderings, adopted: BTreeSet<String>, unadopted: Renderings| Kept {
            texts: Texts::new(),
            manifests: ground.manifests.parsed.clone(),
            renderings,
            adopted,
            unadopted,
            settings: None,
        };
        let under = Input { settings: Some(settings.clone()), ..input.again(input.is_given) };
        // Mostly files tell which addresses mean this repository, before anything is rendered.
        let mut adoption = ground.adoption(&[], &input.is_given);
        let mut unadopted = kept.unadopted.clone();
        if adoption.addresses.is_empty() {
            let (mut survey, renderings) = build::build(&under, ground, &kept.unadopted);
            let apps = survey.apps.iter().map(|app| &app.declared.value);
            let sets = survey.sets.iter().map(|set| &set.declared.value);
            adoption = repository_copies::addresses(apps.chain(sets), input.tree.as_ref(), &input.is_given);
            if adoption.addresses.is_empty() {
                survey.notices.sort();
                return (survey, left(Renderings::new(), BTreeSet::new(), renderings));
            }
            unadopted = renderings;
        }
        let adopted = adoption.addresses;
        let is_free = |rendering: &Rendering| rendering.touched.addresses.is_disjoint(&adopted);
        let renderings = if kept.adopted == adopted {
            kept.renderings.clone()
        } else {
            incremental::those(&unadopted, is_free)
        };
        let is_given = |url: &str| adopted.contains(url) || (input.is_given)(url);
        let (mut survey, renderings) = build::build(&under.again(&is_given), ground, &renderings);
        survey.notices.extend(adoption.notice);
        survey.notices.sort();
        survey.adopted.clone_from(&adopted);
        (survey, left(renderings, adopted, unadopted))
    }

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
    fn rendered_settings(&self) -> Option<RenderSettings> {
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

    /// The place of a field of an object: the last writer that stands in this repository, else where the
    /// object starts, else where its Application names the source.
    pub fn span(&self, object: &Object, field: &FieldPath) -> Span {
        let chain = object.rendered.origins.lookup(field);
        let here = chain.iter().map(|origin| &origin.location).find(|at| self.is_here(object, at));
        if let Some(location) = here {
            return self.files.span(location);
        }
        if self.is_here(object, &object.rendered.location) {
            return self.files.span(&object.rendered.location);
        }
        match self.app_of(object) {
            Some(app) => self.app_span(app, &source_field(app)),
            None => self.files.span(&object.rendered.location),
        }
    }

    /// The place of what decided a field of an object: the value that a chart was given, if that is where it
    /// came from, else as [`Self::span`]. Of several values it is that which says most of the field's text,
    /// then the first.
    pub fn value_span(&self, object: &Object, field: &FieldPath) -> Span {
        let chain = object.rendered.origins.lookup(field);
        let text = field.get(object.value()).and_then(Value::as_str).unwrap_or_default();
        let values = chain.iter().filter(|origin| origin.kind == OriginKind::Values);
        let here = values.map(|origin| &origin.location).filter(|at| self.is_here(object, at));
        // Of those that say as much the last counts, which is then the first.
        let here: Vec<_> = here.collect();
        let most = here.into_iter().rev().max_by_key(|at| self.said_of(text, at));
        most.map_or_else(|| self.span(object, field), |location| self.files.span(location))
    }

    /// How much of a text stands at a place of a values file, in bytes.
    fn said_of(&self, text: &str, at: &Location) -> usize {
        let file = self.files.text(&at.file);
        let line = file.as_ref().and_then(|file| file.lines().nth(at.line as usize - 1));
        let value = line.and_then(|line| line.split_once(": ")).map_or("", |(_, value)| value);
        let value = value.split(" #").next().unwrap_or_default().trim().trim_matches(['"', '\'']);
        if text.contains(value) { value.len() } else { 0 }
    }

    /// The place of a field of an Application's own declaration.
    pub fn app_span(&self, app: &App, field: &FieldPath) -> Span {
        declared_span(&self.files, &app.declared, field)
    }

    /// The place where an object begins.
    pub fn start(&self, object: &Object) -> Span {
        self.span(object, &FieldPath::default().key("kind"))
    }

    /// Whether a place in an object's origins lies in this repository, not in a chart or repository that
    /// was fetched.
    fn is_here(&self, object: &Object, at: &Location) -> bool {
        at.line > 0 && object.read.contains(&at.file)
    }
}

/// The place of a field of an object as it is declared in a file.
pub fn declared_span(files: &Files, declared: &RenderedObject, field: &FieldPath) -> Span {
    let chain = declared.origins.lookup(field);
    let location = chain.iter().map(|origin| &origin.location).find(|at| files.contains(&at.file));
    files.span(location.unwrap_or(&declared.location))
}

/// The field of an Application that says where its manifests are.
fn source_field(app: &App) -> FieldPath {
    let spec = FieldPath::default().key("spec");
    if app.declared.value.at(&["spec", "source"]).is_some() {
        spec.key("source")
    } else {
        spec.key("sources")
    }
}
