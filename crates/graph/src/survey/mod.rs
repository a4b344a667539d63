//! Reading a repository as the engine would: its Applications wherever they are declared, what every
//! source renders to, what that declares in turn, and what no Application reaches.

mod adopt;
mod assemble;
mod build;
mod discover;
mod environment;
mod files;
mod flux;
mod grouping;
mod here;
mod index;
mod kept;
mod kinds;
mod memo;
mod offline;
mod partly;
mod revision;
mod sets;
mod sops;
mod types;
mod units;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use tiphys_appset::ClusterInfo;
use tiphys_diag::Span;
use tiphys_render::Sources;
use tiphys_value::{FieldPath, Location, ObjectExt, OriginKind, RenderedObject, ResourceKey, Value};
use tiphys_vfs::FileTree;

use crate::tools::Tools;
use build::Known;
use memo::Rendering;

pub use environment::{of as environment_of, parting as environment_parting};
pub use files::Files;
pub use index::World;
pub use kept::Kept;
pub use kinds::is_namespaced;
pub use offline::NoSources;
pub use partly::SYNTAX as TEMPLATE_SYNTAX;
pub use revision::Revision;
pub use sets::{ANY_CLUSTER, UNTOLD};
pub use tiphys_model::Application;
pub use types::{
    App, AppId, Declaration, Environment, EnvironmentId, Fault, Object, ObjectId, Outcome, Owner, Set, SetId,
    Unit, UnitId, UnitKind, Unseen,
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
        }
    }
}

/// What a repository says as a whole.
pub struct Survey {
    /// Its files.
    pub files: Arc<Files>,
    /// Groups of Applications that run side by side; a name is unique in each.
    pub environments: Vec<Environment>,
    /// Every Application of every environment.
    pub apps: Vec<App>,
    /// The ApplicationSets that were found.
    pub sets: Vec<Set>,
    /// Charts, kustomizations and manifests that no Application reaches.
    pub units: Vec<Unit>,
    /// Every rendered object, and every object in manifests that nothing renders.
    pub objects: Vec<Object>,
    /// Manifest files that cannot be read.
    pub faults: Vec<Fault>,
    /// What is named but could not be had.
    pub unseen: Vec<Unseen>,
    /// Addresses that nobody said mean this repository, but that were taken to.
    pub adopted: BTreeSet<String>,
    /// Of the revisions of this repository that Applications name, by address and revision, those that what is at hand does
    /// not stand for. Whoever can read them puts them here.
    pub revisions: BTreeMap<(String, String), Revision>,
    /// Read when it is asked for.
    tools: Arc<OnceLock<Tools>>,
    /// Version of the destination clusters, such as `v1.36.1`; empty if it is not told.
    pub kube_version: String,
    /// The clusters that Flux fills, each Kustomization and HelmRelease read as the Application that renders the same;
    /// `None` if there are none, or Applications fill the same ones.
    pub flux: Option<Box<Survey>>,
    /// Which of the sources that Flux reads are this repository.
    pub flux_sources: flux::Sources,
    /// Whether its Applications stand for Kustomizations and HelmReleases of Flux.
    pub is_of_flux: bool,
    pub(crate) index: OnceLock<index::Index>,
}

impl Survey {
    /// Reads a repository.
    pub fn of(input: &Input<'_>) -> Self {
        Self::keeping(input, &Kept::default()).0
    }

    /// Reads a repository of which an earlier survey left something; returns what this one leaves to the next.
    pub fn keeping(input: &Input<'_>, kept: &Kept) -> (Self, Kept) {
        let known =
            Known { texts: kept.texts.clone(), manifests: &kept.manifests, renderings: &kept.unadopted };
        let (survey, left) = build::build(input, known);
        let adopted = adopt::addresses(&survey, input);
        if adopted.is_empty() {
            let left = Kept { manifests: left.manifests, unadopted: left.renderings, ..Kept::default() };
            return (survey, left);
        }
        let is_free = |rendering: &Rendering| rendering.touched.addresses.is_disjoint(&adopted);
        let renderings = if kept.adopted == adopted {
            kept.renderings.clone()
        } else {
            kept::those(&left.renderings, is_free)
        };
        let is_given = |url: &str| adopted.contains(url) || (input.is_given)(url);
        let again = Input {
            is_given: &is_given,
            clusters: input.clusters.clone(),
            tree: input.tree.clone(),
            ..*input
        };
        let known =
            Known { texts: survey.files.known(), manifests: &left.manifests, renderings: &renderings };
        let (survey, adopting) = build::build(&again, known);
        let left = Kept {
            manifests: left.manifests,
            renderings: adopting.renderings,
            adopted: adopted.clone(),
            unadopted: left.renderings,
            ..Kept::default()
        };
        (Self { adopted, ..survey }, left)
    }

    /// What the other tools of the repository say.
    pub fn tools(&self) -> &Tools {
        self.tools.get_or_init(|| Tools::of(&self.files))
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

    /// The Application that nothing renders on whose account an Application exists; itself if there is none. What an
    /// ApplicationSet yields is its own root.
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

    /// Whether two Applications are sure to exist side by side: they have one root, or their roots are declared in
    /// one folder. Others may be two generations of a repository of which one is not applied any more.
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
    /// came from, else as [`Self::span`]. Of several values it is that which says most of the field's text, then the first.
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
