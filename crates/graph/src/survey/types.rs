//! What a survey consists of.

use std::{collections::BTreeSet, sync::Arc};

use tiphys_model::{Application, HookType, SourceType, hook};
pub use tiphys_network::ObjectId;
use tiphys_render::RenderError;
use tiphys_value::{FieldPath, ObjectExt, RenderedObject, ResourceKey, Value};
use tiphys_vfs::parent;

use super::names::ENGINE_NAMESPACE;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub usize);
    };
}

id! {
    /// Position in [`super::Survey::apps`].
    AppId
}
id! {
    /// Position in [`super::Survey::sets`].
    SetId
}
id! {
    /// Position in [`super::Survey::units`].
    UnitId
}
id! {
    /// Position in [`super::Survey::environments`].
    EnvironmentId
}

/// A group of Applications that one engine runs side by side.
#[derive(Clone, Debug)]
pub struct Environment {
    /// The folder that tells it from the others, such as `envs/prod`; empty if there is but one.
    pub name: String,
    /// The Applications that nothing else renders.
    pub roots: Vec<AppId>,
}

/// Which Application or ApplicationSet: the two may have the same name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeclaredId {
    /// Whether it is an ApplicationSet.
    pub is_set: bool,
    /// Its namespace (the engine's if it names none) and its name.
    pub id: (String, String),
}

impl DeclaredId {
    /// That of an object.
    pub fn from_object(object: &Value) -> Self {
        let namespace = object.namespace();
        let namespace = if namespace.is_empty() { ENGINE_NAMESPACE } else { namespace };
        let id = (namespace.to_owned(), object.name().to_owned());
        Self { is_set: object.kind() == "ApplicationSet", id }
    }

    /// Whether an object is what this stands for.
    pub fn is(&self, object: &Value) -> bool {
        let kind = if self.is_set { "ApplicationSet" } else { "Application" };
        object.kind() == kind
            && object.gvk().group == tiphys_model::names::GROUP
            && Self::from_object(object).id == self.id
    }
}

/// A declaration that nothing of the repository renders: somebody applies it by hand.
#[derive(Clone, Debug)]
pub struct Root {
    /// The environment that it belongs to.
    pub environment: EnvironmentId,
    /// The chart or kustomization that it is taken from; `None` if it stands in a file.
    pub unit: Option<UnitId>,
    /// The Application or ApplicationSet.
    pub declared: Arc<RenderedObject>,
}

/// What declares an Application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Declaration {
    /// A file that no Application renders.
    File,
    /// An Application renders it.
    App(AppId),
    /// A chart or kustomization that no Application reaches renders it.
    Unit(UnitId),
    /// An ApplicationSet yields it.
    Set(SetId),
}

/// What became of rendering.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The objects are there.
    Rendered,
    /// What it needs is not in the repository and could not be had.
    Unseen(String),
    /// It does not render.
    Failed(RenderError),
    /// It was not tried: another Application of the environment has its name.
    Duplicate(AppId),
}

/// An Application of one environment.
#[derive(Clone, Debug)]
pub struct App {
    /// Its position.
    pub id: AppId,
    /// The environment that it belongs to.
    pub environment: EnvironmentId,
    /// What declares it.
    pub declaration: Declaration,
    /// The Application that renders the declaration, or the ApplicationSet that yields it.
    pub above: Option<AppId>,
    /// The declaration, with the origins of its fields.
    pub declared: Arc<RenderedObject>,
    /// The declaration as the engine understands it.
    pub application: Application,
    /// What became of rendering it.
    pub outcome: Outcome,
    /// What it renders to.
    pub objects: Vec<ObjectId>,
    /// The tool of each source; `None` if it renders nothing.
    pub tools: Vec<Option<SourceType>>,
    /// The files of this repository that its rendering read.
    pub read: Arc<BTreeSet<Arc<str>>>,
}

impl App {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.application.metadata.name
    }

    /// Its sync wave.
    pub fn wave(&self) -> i64 {
        hook::wave(&self.declared.value)
    }

    /// Its cluster: the name or else the address.
    pub fn cluster(&self) -> &str {
        let destination = &self.application.spec.destination;
        let of = if destination.name.is_empty() { &destination.server } else { &destination.name };
        if of == tiphys_model::names::IN_CLUSTER_NAME { tiphys_model::names::IN_CLUSTER_SERVER } else { of }
    }

    /// Whether another Application of its environment goes to the same cluster.
    pub fn is_beside(&self, other: &Self) -> bool {
        self.environment == other.environment && self.cluster() == other.cluster()
    }

    /// Namespace (the engine's if it names none) and name.
    pub fn declared_id(&self) -> DeclaredId {
        DeclaredId::from_object(&self.declared.value)
    }

    /// Whether it came out as objects.
    pub fn is_rendered(&self) -> bool {
        matches!(self.outcome, Outcome::Rendered)
    }
}

/// An ApplicationSet.
#[derive(Clone, Debug)]
pub struct Set {
    /// The declaration.
    pub declared: Arc<RenderedObject>,
    /// The environments that it is of.
    pub environments: BTreeSet<EnvironmentId>,
    /// The Applications that it yields in all environments.
    pub apps: Vec<AppId>,
    /// Why it yields none.
    pub fault: Option<String>,
    /// Why not all of what it yields can be used.
    pub partly: Option<String>,
    /// Whether a generator asked for what could not be had, so that the fault says nothing of the set.
    pub unseen: bool,
    /// Whether a generator asked for what the repository does not hold, and was answered symbolically.
    pub symbolic: bool,
}

/// What is rendered though no Application reaches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnitKind {
    /// A chart, with its default values.
    Chart,
    /// A kustomization that no other refers to.
    Kustomization,
    /// A manifest file.
    Manifest,
}

/// A chart, kustomization or manifest file that no Application reaches.
#[derive(Clone, Debug)]
pub struct Unit {
    /// What it is.
    pub kind: UnitKind,
    /// Its folder or file.
    pub path: String,
    /// What became of rendering it.
    pub outcome: Outcome,
    /// What it renders to.
    pub objects: Vec<ObjectId>,
}

/// What an object belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// An Application.
    App(AppId),
    /// Nothing that an Application reaches.
    Unit(UnitId),
}

/// An object that an Application or unit renders.
#[derive(Clone, Debug)]
pub struct Object {
    /// Its position.
    pub id: ObjectId,
    /// What renders it.
    pub owner: Owner,
    /// The environment of its Application; `None` for units, which have none.
    pub environment: Option<EnvironmentId>,
    /// Its cluster, as [`App::cluster`]; empty for units.
    pub cluster: Arc<str>,
    /// Group, kind, namespace (the Application's where it names none) and name.
    pub key: ResourceKey,
    /// The object with the origins of its fields.
    pub rendered: Arc<RenderedObject>,
    /// Its sync wave.
    pub wave: i64,
    /// Its hook types; empty if it is none.
    pub hooks: BTreeSet<HookType>,
    /// The files of this repository that its rendering read.
    pub read: Arc<BTreeSet<Arc<str>>>,
}

impl Object {
    /// The object as data.
    pub fn value(&self) -> &Value {
        &self.rendered.value
    }

    /// The folder of the file that it stands in; empty for the root.
    pub fn folder(&self) -> &str {
        parent(&self.rendered.location.file).unwrap_or_default()
    }

    /// It, as the analysis of networks looks at it.
    pub fn of_network(&self) -> tiphys_network::Object<'_> {
        tiphys_network::Object { id: self.id, key: &self.key, value: self.value() }
    }

    /// Whether it would live in the same cluster as another. What no Application reaches lives only
    /// with what the same unit renders.
    pub fn lives_with(&self, other: &Self) -> bool {
        match (self.environment, other.environment) {
            (Some(own), Some(others)) => own == others && self.cluster == other.cluster,
            (None, None) => self.owner == other.owner,
            _ => false,
        }
    }

    /// `Kind/name`, with the namespace if it has one: `Service/web in shop`.
    pub fn title(&self) -> String {
        self.of_network().title()
    }
}

/// A manifest file that cannot be read.
#[derive(Clone, Debug)]
pub struct UnreadableFile {
    /// The file.
    pub file: String,
    /// Why, with its place.
    pub error: RenderError,
    /// Whether the file was clearly meant to be a manifest.
    pub is_manifest: bool,
}

/// A variable in what a Kustomization of Flux builds that nothing gives a value, and that has no default.
#[derive(Clone, Debug)]
pub struct UnsetVariable {
    /// What stands for the Kustomization.
    pub app: AppId,
    /// The variable.
    pub name: String,
    /// The object that asks for it first.
    pub object: ObjectId,
    /// The field that does.
    pub field: FieldPath,
    /// Whether it stays as it is, because the Kustomization replaces no variables; else it becomes empty.
    pub is_literal: bool,
}

/// An expression in what a Kustomization of Flux builds that Flux cannot read where it puts in variables.
#[derive(Clone, Debug)]
pub struct UnreadableExpression {
    /// What stands for the Kustomization.
    pub app: AppId,
    /// The expression, or its beginning.
    pub text: String,
    /// The object that holds it.
    pub object: ObjectId,
    /// The field that does.
    pub field: FieldPath,
}

/// What is named in the repository but could not be had.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unseen {
    /// What: a repository's address, a chart.
    pub what: String,
    /// Why it could not be had.
    pub why: String,
    /// The Applications that need it.
    pub apps: BTreeSet<String>,
}
