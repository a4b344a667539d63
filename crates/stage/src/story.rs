//! What a rehearsal tells.

use std::collections::BTreeMap;

use serde::Serialize;
use tiphys_value::ResourceKey;

use crate::{causes::Cause, mechanism::Mechanism, object_state::Level, outage::Outage};

/// What became of an object at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum What {
    /// It was created.
    Created,
    /// What is asked of it changed.
    Changed,
    /// Its state changed.
    State,
    /// It is gone.
    Deleted,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Moment {
    /// Milliseconds since the beginning.
    pub at_ms: u64,
    /// The number of the cluster: 0 is the engine's own.
    #[serde(skip_serializing_if = "is_zero")]
    pub cluster: usize,
    /// Which object.
    pub object: ResourceKey,
    /// The Application that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub application: Option<String>,
    /// What made it in the end: of a pod its Deployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub made_by: Option<ResourceKey>,
    /// What happened.
    pub what: What,
    /// The state before.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub from: String,
    /// The state after.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub to: String,
    /// The fields that changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
    /// How well it is after.
    pub level: Level,
    /// Why the state is not better.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub because: String,
    /// The same as a cause of the common vocabulary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mechanism: Option<Mechanism>,
    /// Whether the object came with the engine from Git.
    pub from_git: bool,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// Every Application is Synced and Healthy.
    Green,
    /// Not every Application is, and nothing moves any more.
    Standstill,
    /// Not every Application is when the time is up, and something still moves.
    TimeUp,
}

/// An Application at the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AppEnd {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Its name in the marks of its objects, and in [`Moment::application`].
    pub id: String,
    /// The id of the Application that it is an object of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Its wave in its parent.
    pub wave: i64,
    /// How many Applications are above it.
    pub depth: usize,
    /// The state in words.
    pub state: String,
    /// Whether it is Synced and Healthy, and nothing runs.
    pub is_green: bool,
    /// When it first was there, in milliseconds since the beginning.
    pub began_ms: u64,
    /// Since when it is green, if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub green_ms: Option<u64>,
    /// How many objects it has.
    pub objects: usize,
    /// Why it is not green, as a cause of the common vocabulary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mechanism: Option<Mechanism>,
    /// What its operation waits for at the end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<String>,
}

/// What is not known, and taken to be well.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Assumed {
    /// Images of which nothing is known: they are taken to exist, to be public and to run.
    pub images: Vec<String>,
    /// Kinds of custom resources without a known operator, with the number of objects: they count as done.
    pub unattended: BTreeMap<String, usize>,
    /// Services, by namespace and name, whose load balancers the platform is taken to make.
    pub load_balancers: Vec<String>,
    /// Webhooks outside of the cluster: they are taken to allow everything.
    pub outside_webhooks: Vec<String>,
    /// Objects, by kind and name, that custom resources name and nothing brings: they are taken to be there.
    pub references: Vec<String>,
    /// Policies of engines in the cluster, by kind and name: they are taken to allow everything and to change
    /// nothing.
    pub policies: Vec<String>,
}

/// What happened on a stage, from the beginning to the end.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Story {
    /// How it ended.
    pub outcome: Outcome,
    /// When: of a green end when the last Application became green, of a standstill when the last thing
    /// moved. In milliseconds since the beginning.
    pub took_ms: u64,
    /// The Applications, in the order in which they are rolled out.
    pub applications: Vec<AppEnd>,
    /// Applications that others are to make and have not made at the end: their wave never comes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_begun: Vec<ResourceKey>,
    /// What could not be reached for a while after it had been there.
    pub outages: Vec<Outage>,
    /// What is wrong at the end, and what comes of it.
    pub causes: Vec<Cause>,
    /// What was put in place of what is out of reach.
    pub placeholders: Vec<String>,
    /// What is not known, and taken to be well.
    pub assumed: Assumed,
    /// Everything that happened, in order.
    pub moments: Vec<Moment>,
}

impl Story {
    /// Whether it ended green.
    pub fn is_green(&self) -> bool {
        self.outcome == Outcome::Green
    }
}
