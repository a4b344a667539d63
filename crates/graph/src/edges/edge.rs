//! An edge: what it says, and its two ends.

use tiphys_value::{FieldPath, ResourceKey};

use crate::ObjectId;

/// What an edge says of its two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EdgeKind {
    /// Its pods mount a ConfigMap, Secret or PersistentVolumeClaim.
    Mounts,
    /// Its pods take their environment from a ConfigMap or Secret.
    Env,
    /// Its images are pulled with a Secret.
    Pulls,
    /// Its pods run as a ServiceAccount.
    RunsAs,
    /// Its selector finds the pods of a workload.
    Selects,
    /// It scales a workload.
    Scales,
    /// It sends traffic to a Service or through a Gateway.
    Routes,
    /// The API server calls a Service because of it.
    Calls,
    /// A CustomResourceDefinition defines its kind.
    DefinedBy,
    /// It lives in a Namespace that is rendered too.
    LivesIn,
    /// It grants a role, or grants it to a ServiceAccount.
    Binds,
    /// Its controller makes an object from it.
    Produces,
    /// Its controller needs another object to do its work: a secret store, an issuer, a project.
    Needs,
}

impl EdgeKind {
    /// The word for it.
    pub fn verb(self) -> &'static str {
        match self {
            Self::Mounts => "mounts",
            Self::Env => "takes its environment from",
            Self::Pulls => "pulls with",
            Self::RunsAs => "runs as",
            Self::Selects => "selects",
            Self::Scales => "scales",
            Self::Routes => "routes to",
            Self::Calls => "calls",
            Self::DefinedBy => "is defined by",
            Self::LivesIn => "lives in",
            Self::Binds => "binds",
            Self::Produces => "produces",
            Self::Needs => "needs",
        }
    }
}

/// The far end of an edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A rendered object.
    Object(ObjectId),
    /// Something that nothing in the repository renders: it may come from a controller, or be missing.
    Named(ResourceKey),
}

/// One dependency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The object that says so.
    pub from: ObjectId,
    /// What it depends on, or acts upon.
    pub to: Target,
    /// What the edge says.
    pub kind: EdgeKind,
    /// The field of `from` that says so.
    pub field: FieldPath,
    /// Whether it works without the far end too.
    pub optional: bool,
}
