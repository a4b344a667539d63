//! What Argo CD's programs are shown of an Application's objects beside its status (Argo CD API reference,
//! "ApplicationTree", "ResourceDiff"). What only Argo CD's web interface shows of an object (`info`,
//! `networkingInfo`, the `hosts` of a tree) is not given.

use serde::{Deserialize, Serialize};

use crate::{HealthStatus, Time, source::is_false};

/// The objects of an Application, and what they made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ApplicationTree {
    /// The managed objects and what they own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<ResourceNode>,
    /// Objects of the destination namespace that no Application has, where the project asks for them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub orphaned_nodes: Vec<ResourceNode>,
}

/// An object of a tree.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceNode {
    /// Which object.
    #[serde(flatten)]
    pub reference: ResourceRef,
    /// The objects that it belongs to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parent_refs: Vec<ResourceRef>,
    /// Its version in the cluster.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// The images of its containers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<String>,
    /// Its health, if its kind has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<HealthStatus>,
    /// Since when it is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Time>,
}

/// Names an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceRef {
    /// API group; empty for the core group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// API version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Kind.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Namespace; empty for what lives in none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// `metadata.uid`; empty for what is not there.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
}

/// A managed object as it is and as it should be, each state as JSON text, `null` where there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceDiff {
    /// API group; empty for the core group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty for what lives in none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name.
    pub name: String,
    /// As the sources have it.
    pub target_state: String,
    /// As the cluster has it.
    pub live_state: String,
    /// Whether it is a hook.
    #[serde(skip_serializing_if = "is_false")]
    pub hook: bool,
    /// As the cluster has it, without what never counts.
    pub normalized_live_state: String,
    /// What an apply would make of it.
    pub predicted_live_state: String,
    /// Its version in the cluster.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// Whether it is not as it should be.
    #[serde(skip_serializing_if = "is_false")]
    pub modified: bool,
}
