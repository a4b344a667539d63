//! Health of live objects: a user's Lua, built-in kinds as Argo CD judges them, custom resources by small
//! tables of published status conventions, and the roll-up to an Application's health; and the actions that
//! live objects offer. Pure: no IO, and no clock but the one that is passed in.
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod actions;
mod app_health;
mod application;
mod builtin;
mod conditions;
mod custom;
mod lua;
mod pod;
mod rules;
mod verdicts;

pub use actions::{Action, ActionError, Actions, Outcome, Param};
pub use app_health::{Member, roll_up};
pub use lua::{LuaError, check_script};
pub use rules::{Assessment, RuleOrigin, Rules, ScriptFault};
use std::collections::BTreeSet;

use serde_json::Value;
use tiphys_model::{HealthStatus, settings::Customizations};
use tiphys_value::GroupKind;

/// Settings of the built-in rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HealthSettings {
    /// Argo CD's behaviour where ours differs on purpose: no health for Applications, suspended jobs.
    pub compat: bool,
    /// The kinds of custom resources whose operators work in the cluster; `None` where it is taken that all
    /// do. What no operator will ever write a status of has no health, and counts as done.
    pub attended: Option<BTreeSet<GroupKind>>,
}

/// Health of a live object by the built-in rules alone; see [`Rules::assess`].
pub fn assess(object: &Value, settings: &HealthSettings) -> Option<HealthStatus> {
    Rules::new(settings.clone(), Customizations::default()).assess(object)
}
