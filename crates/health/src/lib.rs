//! Health of live objects: built-in kinds as Argo CD judges them, custom resources by small tables of
//! published status conventions, and the roll-up to an Application's health. Pure: no IO, no clock.

mod application;
mod builtin;
mod conditions;
mod custom;
mod pod;
mod rollup;

pub use rollup::{Member, roll_up};
use serde_json::Value;
use tiphys_model::{HealthCode, HealthStatus, names};
use tiphys_value::ObjectExt;

/// Settings of the built-in rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HealthSettings {
    /// Argo CD's behaviour where ours differs on purpose: no health for Applications, suspended jobs.
    pub compat: bool,
}

/// Health of a live object; `None` if nothing is known of its kind (then it counts as done).
/// The order of lookup: pending deletion, built-in kinds, tables of custom resources.
pub fn assess(object: &Value, settings: &HealthSettings) -> Option<HealthStatus> {
    let is_held_hook = object
        .at(&["metadata", "finalizers"])
        .and_then(Value::as_array)
        .is_some_and(|list| list.iter().any(|f| f.as_str() == Some(names::HOOK_FINALIZER)));
    if object.is_terminating() && !is_held_hook {
        return Some(HealthStatus::new(HealthCode::Progressing, "Pending deletion"));
    }
    let gvk = object.gvk();
    if gvk.group == names::GROUP && gvk.kind == "Application" {
        return (!settings.compat).then(|| application::assess(object));
    }
    builtin::assess(&gvk, object, settings).or_else(|| custom::assess(&gvk, object))
}
