//! What a rehearsal leads to, for people and programs alike.

use std::collections::BTreeMap;

use serde::Serialize;
use tiphys_stage::{
    causes::Repair,
    mechanism::Mechanism,
    story::{Outcome, Story},
};

use tiphys_value::ResourceKey;

use super::effects::Effects;

/// The version of the JSON form. It is raised when a field changes its meaning or goes; new ones may come.
pub(super) const VERSION: u32 = 1;

/// How a play ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Ended {
    /// How.
    pub outcome: Outcome,
    /// When, in milliseconds of virtual time.
    pub took_ms: u64,
    /// How many Applications there are.
    pub applications: usize,
    /// Those that are not green.
    pub red: Vec<String>,
    /// Those that others were to make and never made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_begun: Vec<String>,
}

impl Ended {
    /// Of a story.
    pub(super) fn from_story(story: &Story) -> Self {
        let red = story.applications.iter().filter(|app| !app.is_green);
        Self {
            outcome: story.outcome,
            took_ms: story.took_ms,
            applications: story.applications.len(),
            red: red.map(|app| app.name.clone()).collect(),
            not_begun: story.not_begun.iter().map(|key| key.name.clone()).collect(),
        }
    }
}

/// A change, and what it does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Change {
    /// The state before.
    pub base: String,
    /// The state after.
    pub head: String,
    /// How bringing up the state before ended.
    pub before: Ended,
    /// What the change does.
    pub effects: Effects,
}

/// An Application that ends otherwise by other rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Difference {
    /// Which one.
    pub application: String,
    /// How it ends by Argo CD's rules.
    pub argo_cd: String,
    /// How it ends by Tiphys' own.
    pub tiphys: String,
}

/// A rehearsal.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    /// [`VERSION`].
    pub version: u32,
    /// Whether the command ends with exit code 0.
    pub is_green: bool,
    /// Whose rules it went by: `tiphys` or `argo-cd`.
    pub rules: &'static str,
    /// What uids and names were drawn from.
    pub seed: u64,
    /// The faults, as they were written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
    /// How it ends without them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without_faults: Option<Ended>,
    /// What had been there and was away for longer than is allowed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub too_long_unavailable: Vec<ResourceKey>,
    /// What is broken though no Application shows it: CronJobs that fail when they run, what a change takes
    /// away in silence, nodes that cannot be drained.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<ResourceKey>,
    /// The change, if one was played.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
    /// What ends otherwise by Tiphys' own rules, if it went by Argo CD's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub differences: Option<Vec<Difference>>,
    /// How the repository was understood.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    /// Where the Applications are written.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub places: BTreeMap<String, String>,
    /// What happened.
    pub story: Story,
}

/// What a fault leads to.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Ranked {
    /// The fault.
    pub fault: String,
    /// How it ended.
    pub ended: Ended,
    /// Whether all is green at the end, and a node that was to be drained was.
    pub is_survived: bool,
    /// How much later than without the fault all was green, in milliseconds; of a fault that begins after
    /// that, how long after its beginning.
    pub later_ms: u64,
    /// How long after the end of the fault all was green, in milliseconds; absent if it was green before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery_ms: Option<u64>,
    /// How long anything was away that had been there, in milliseconds.
    pub unavailable_ms: u64,
    /// What happens: what is away when, what is not green, a line each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub story: Vec<String>,
    /// The first cause of what is not green.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The same as a cause of the common vocabulary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mechanism: Option<Mechanism>,
    /// The smallest change that is known to mend it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repair: Option<Repair>,
}

/// What every single fault leads to.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Exploration {
    /// [`VERSION`].
    pub version: u32,
    /// How it ends without a fault.
    pub without_faults: Ended,
    /// How long each fault lasts, in milliseconds.
    pub lasts_ms: u64,
    /// The faults, those that are not survived first.
    pub ranking: Vec<Ranked>,
    /// How many faults were left out.
    pub left_out: usize,
}
