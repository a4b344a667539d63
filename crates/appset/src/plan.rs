//! From the Applications that are wanted and those that are there to a plan of changes.

use std::collections::BTreeMap;

use serde_json::Value;
use tiphys_value::ObjectExt;

use crate::Generated;

/// `syncPolicy.applicationsSync`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Create, update, delete.
    #[default]
    Sync,
    /// Create.
    CreateOnly,
    /// Create and update.
    CreateUpdate,
    /// Create and delete.
    CreateDelete,
}

impl Policy {
    /// Reads the policy of an ApplicationSet; an unknown one is none.
    pub fn of(set: &Value) -> Option<Self> {
        match set.str_at(&["spec", "syncPolicy", "applicationsSync"]) {
            None | Some("" | "sync") => Some(Self::Sync),
            Some("create-only") => Some(Self::CreateOnly),
            Some("create-update") => Some(Self::CreateUpdate),
            Some("create-delete") => Some(Self::CreateDelete),
            Some(_) => None,
        }
    }

    fn updates(self) -> bool {
        matches!(self, Self::Sync | Self::CreateUpdate)
    }

    fn deletes(self) -> bool {
        matches!(self, Self::Sync | Self::CreateDelete)
    }
}

/// How many deletions at once need an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Brake {
    /// None: Argo CD's behaviour.
    Off,
    /// Deleting all Applications of a set does.
    On,
}

/// Changes by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Applications to create.
    pub create: Vec<Value>,
    /// Applications to update: what they should be.
    pub update: Vec<Value>,
    /// Names of Applications to delete.
    pub delete: Vec<String>,
    /// Why deletions are held back, if they are.
    pub held: Option<String>,
}

/// Plans the changes. `existing` are the Applications that the set owns. Those with a fault are left alone.
pub fn plan(generated: &[Generated], existing: &[Value], policy: Policy, brake: Brake) -> Plan {
    let there: BTreeMap<&str, &Value> = existing.iter().map(|app| (app.name(), app)).collect();
    let mut plan = Plan::default();
    for one in generated.iter().filter(|one| one.fault.is_none()) {
        match there.get(one.application.name()) {
            None => plan.create.push(one.application.clone()),
            Some(have) if policy.updates() && differs(&one.application, have) => {
                plan.update.push(one.application.clone());
            }
            Some(_) => {}
        }
    }
    let wanted = |name: &str| generated.iter().any(|one| one.application.name() == name);
    if policy.deletes() {
        plan.delete = there.keys().filter(|name| !wanted(name)).map(|name| (*name).to_owned()).collect();
    }
    let wipes_out = !existing.is_empty() && plan.delete.len() == existing.len() && plan.create.is_empty();
    if wipes_out && brake == Brake::On {
        plan.held = Some(format!(
            "the generators yield nothing; {} Applications would be deleted",
            plan.delete.len()
        ));
        plan.delete.clear();
    }
    plan
}

/// Whether an Application has to be changed to be what is wanted: spec, labels, annotations, finalizers.
fn differs(wanted: &Value, have: &Value) -> bool {
    let contains = |path: [&str; 2]| {
        wanted
            .at(&path)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .all(|(key, value)| have.at(&path).and_then(|map| map.get(key)) == Some(value))
    };
    wanted.get("spec") != have.get("spec")
        || !contains(["metadata", "labels"])
        || !contains(["metadata", "annotations"])
}
