//! From the Applications that are wanted and those that are there to a plan of changes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use tiphys_diff::{DiffOptions, IgnoreRules};
use tiphys_model::{IgnoreDifference, names};
use tiphys_value::ObjectExt;

use crate::{Generated, normalize, owner};

/// Annotations of Applications that their sets never take away (Argo CD docs, "Controlling Resource
/// Modification"), and ours.
const KEPT_ANNOTATIONS: [&str; 10] = [
    "notified.notifications.argoproj.io",
    names::REFRESH,
    names::REFRESH_TIMESTAMP,
    "argocd.argoproj.io/hydrate",
    names::DELETION_APPROVED,
    names::SKIP_RECONCILE,
    names::PAUSED_UNTIL,
    names::PAUSED_RESOURCES,
    names::OWNERSHIP,
    names::KEPT,
];
/// Finalizers that a set never takes away, with all their stages.
const KEPT_FINALIZERS: [&str; 2] = [names::PRE_DELETE_FINALIZER, names::POST_DELETE_FINALIZER];
/// So many deletions at once, if they are more than half of all, need an approval.
const BRAKE_FROM: usize = 20;
/// Deeper parts of Applications are taken as they are.
const MAX_DEPTH: usize = 64;

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
    pub fn from_set(set: &Value) -> Option<Self> {
        match set.str_at(&["spec", "syncPolicy", "applicationsSync"]) {
            None | Some("" | "sync") => Some(Self::Sync),
            Some("create-only") => Some(Self::CreateOnly),
            Some("create-update") => Some(Self::CreateUpdate),
            Some("create-delete") => Some(Self::CreateDelete),
            Some(_) => None,
        }
    }

    /// Whether Applications that are there are changed.
    pub fn updates(self) -> bool {
        matches!(self, Self::Sync | Self::CreateUpdate)
    }

    /// Whether Applications that are not wanted any more are deleted.
    pub fn deletes(self) -> bool {
        matches!(self, Self::Sync | Self::CreateDelete)
    }
}

/// How many deletions at once need an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Brake {
    /// None: Argo CD's behaviour, or the approval is there.
    Off,
    /// Deleting all Applications of a set does, and deleting more than half of at least twenty.
    On,
}

/// A change of an Application.
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    /// As it is.
    pub before: Value,
    /// As it is to be.
    pub after: Value,
}

/// Changes by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Applications to create, with the set as their owner.
    pub create: Vec<Value>,
    /// Applications to update.
    pub update: Vec<Update>,
    /// Names of Applications to delete.
    pub delete: Vec<String>,
    /// Why deletions are held back, if they are.
    pub held: Option<String>,
    /// Applications that cannot become the set's, with why.
    pub faults: BTreeMap<String, String>,
}

/// Plans the changes. `existing` are at least the set's own Applications and those of its namespace that have
/// the name of a generated one. Generated ones with a fault are neither created nor changed nor deleted.
pub fn plan(set: &Value, generated: &[Generated], existing: &[Value], policy: Policy, brake: Brake) -> Plan {
    let there: BTreeMap<&str, &Value> = existing.iter().map(|app| (app.name(), app)).collect();
    let mut plan = Plan::default();
    for one in generated.iter().filter(|one| one.fault.is_none()) {
        let name = one.application.name();
        match there.get(name) {
            None => plan.create.push(owned(set, normalized(&one.application))),
            Some(have) => match owner::owner_of(have) {
                Some(other) if other != set.name() => {
                    let fault = format!("Application {name} belongs to ApplicationSet {other}");
                    plan.faults.insert(name.to_owned(), fault);
                }
                _ if policy.updates() => match changed(set, &normalized(&one.application), have) {
                    Ok(after) => {
                        plan.update.extend(after.map(|after| Update { before: (*have).clone(), after }))
                    }
                    Err(fault) => {
                        plan.faults.insert(name.to_owned(), fault);
                    }
                },
                _ => {}
            },
        }
    }
    if policy.deletes() {
        plan_deletions(set, generated, existing, brake, &mut plan);
    }
    plan
}

fn plan_deletions(set: &Value, generated: &[Generated], existing: &[Value], brake: Brake, plan: &mut Plan) {
    let wanted: BTreeSet<&str> = generated.iter().map(|one| one.application.name()).collect();
    let owned: Vec<&Value> = existing.iter().filter(|app| owner::is_owned_by(app, set)).collect();
    let unwanted = owned.iter().filter(|app| !wanted.contains(app.name()) && !app.is_terminating());
    plan.delete = unwanted.map(|app| app.name().to_owned()).collect();
    plan.delete.sort();
    let (gone, all) = (plan.delete.len(), owned.len());
    let wipes_out = gone > 0 && gone == all && generated.is_empty();
    let is_mass = gone >= BRAKE_FROM && gone * 2 > all;
    if brake == Brake::On && (wipes_out || is_mass) {
        let what = if wipes_out { "the generators yield nothing" } else { "the generators yield far less" };
        plan.held = Some(format!("{what}; {gone} of {all} Applications would be deleted"));
        plan.delete.clear();
    }
}

fn owned(set: &Value, mut app: Value) -> Value {
    app["metadata"]["ownerReferences"] = json!([owner::owner_reference(set)]);
    app
}

fn normalized(app: &Value) -> Value {
    let mut app = app.clone();
    normalize::normalize(&mut app);
    app
}

/// The Application as it is to be, or `None` if nothing that counts differs.
fn changed(set: &Value, wanted: &Value, have: &Value) -> Result<Option<Value>, String> {
    let mut after = have.clone();
    after["spec"] = wanted.get("spec").cloned().unwrap_or_default();
    if let Some(operation) = wanted.get("operation") {
        after["operation"] = operation.clone();
    }
    for (field, always) in [("annotations", &KEPT_ANNOTATIONS[..]), ("labels", &[])] {
        let map = with_preserved(set, wanted, have, field, always);
        set_or_remove(&mut after, field, map.into());
    }
    set_or_remove(&mut after, "finalizers", finalizers(wanted, have).into());
    owner::take(&mut after, set);
    let rules = ignored(set);
    if !rules.is_empty() {
        let rules = IgnoreRules::for_object(have, &rules).map_err(|error| error.to_string())?;
        let options = DiffOptions { ignore: Some(&rules), ..DiffOptions::default() };
        let mut kept = tiphys_diff::keep_ignored(&after, have, &options);
        drop_remains(&mut kept, &after, &rules.without_ignored(have), 0);
        after = kept;
    }
    if normalize::is_same_spec(&after, have) {
        // It stays as it was written, or two forms of the same would be a change for ever.
        after["spec"] = have.get("spec").cloned().unwrap_or_default();
    }
    Ok((after != *have).then_some(after))
}

/// What is ignored goes with the part that it is in, if that is not wanted any more: a revision of `source`
/// makes no source beside `sources`.
fn drop_remains(kept: &mut Value, wanted: &Value, rest: &Value, depth: usize) {
    let (Some(map), true) = (kept.as_object_mut(), depth < MAX_DEPTH) else { return };
    map.retain(|key, _| {
        let is_part = rest.get(key).is_some_and(|part| part.as_object().is_some_and(|part| !part.is_empty()));
        wanted.get(key).is_some() || !is_part
    });
    for (key, value) in map {
        if let (Some(wanted), Some(rest)) = (wanted.get(key), rest.get(key)) {
            drop_remains(value, wanted, rest, depth + 1);
        }
    }
}

fn set_or_remove(object: &mut Value, field: &str, value: Value) {
    let is_empty =
        value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty);
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    if is_empty {
        metadata.remove(field);
    } else {
        metadata.insert(field.to_owned(), value);
    }
}

/// The wanted annotations or labels, and those that are to be preserved.
fn with_preserved(
    set: &Value,
    wanted: &Value,
    have: &Value,
    field: &str,
    always: &[&str],
) -> Map<String, Value> {
    let of = |object: &Value| object.at(&["metadata", field]).and_then(Value::as_object).cloned();
    let mut out = of(wanted).unwrap_or_default();
    let named = set.at(&["spec", "preservedFields", field]).and_then(Value::as_array);
    let named = named.into_iter().flatten().filter_map(Value::as_str);
    let have = of(have).unwrap_or_default();
    for key in named.chain(always.iter().copied()) {
        if let Some(value) = have.get(key) {
            out.insert(key.to_owned(), value.clone());
        }
    }
    out
}

fn finalizers(wanted: &Value, have: &Value) -> Vec<Value> {
    let of = |object: &Value| {
        object.at(&["metadata", "finalizers"]).and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let mut out = of(wanted);
    for finalizer in of(have) {
        let kept = finalizer.as_str().is_some_and(|f| KEPT_FINALIZERS.iter().any(|kept| f.starts_with(kept)));
        if kept && !out.contains(&finalizer) {
            out.push(finalizer);
        }
    }
    out
}

/// `spec.ignoreApplicationDifferences` as rules for Applications.
fn ignored(set: &Value) -> Vec<IgnoreDifference> {
    let rules = set.at(&["spec", "ignoreApplicationDifferences"]).and_then(Value::as_array);
    let texts = |rule: &Value, key: &str| -> Vec<String> {
        let list = rule.get(key).and_then(Value::as_array).into_iter().flatten();
        list.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let rule = |rule: &Value| IgnoreDifference {
        group: names::GROUP.into(),
        kind: "Application".into(),
        name: rule.str_at(&["name"]).unwrap_or_default().to_owned(),
        json_pointers: texts(rule, "jsonPointers"),
        jq_path_expressions: texts(rule, "jqPathExpressions"),
        ..IgnoreDifference::default()
    };
    rules.into_iter().flatten().map(rule).collect()
}
