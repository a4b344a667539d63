//! Apply and update: who owns what afterwards, and what conflicts.

use serde_json::Value;
use tiphys_schema::{TypeRef, zero_value};

use super::{
    compare::{Comparison, compare},
    managers::{self, Entry, Operation},
    merge::{drop_emptied, merge, without},
    set::FieldSet,
    typed::faults,
};

/// Fields of every object that nobody owns.
const UNOWNED: [&[&str]; 9] = [
    &["f:apiVersion"],
    &["f:kind"],
    &["f:metadata", "f:name"],
    &["f:metadata", "f:namespace"],
    &["f:metadata", "f:creationTimestamp"],
    &["f:metadata", "f:uid"],
    &["f:metadata", "f:resourceVersion"],
    &["f:metadata", "f:generation"],
    &["f:metadata", "f:managedFields"],
];

/// Who writes, how and when.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Type of the object; `None` if nothing is known of it.
    pub ty: Option<TypeRef<'a>>,
    /// Field manager.
    pub manager: &'a str,
    /// Version of the request's body, such as `apps/v1`.
    pub api_version: &'a str,
    /// Subresource, empty for the object itself.
    pub subresource: &'a str,
    /// The time of the request, RFC 3339 in seconds.
    pub now: &'a str,
    /// Fields that this endpoint ignores and that it therefore never owns, inner ones with dots: `status`
    /// where a status subresource exists; `spec` and `metadata` are for the status subresource's caller to
    /// name.
    pub ignored: &'a [&'a str],
    /// The only field that this endpoint owns, inner ones with dots; empty for all.
    pub only: &'a str,
}

/// A field that another manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The owner, as messages name it, such as `"kubectl" using apps/v1`.
    pub manager: String,
    /// The field, such as `.spec.replicas`.
    pub field: String,
}

/// Why a configuration is not applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// Others own fields that it would change (HTTP 409); causes have the reason `FieldManagerConflict`.
    #[error("{}", conflict_message(.0))]
    Conflicts(Vec<Conflict>),
    /// The configuration does not fit its schema.
    #[error("{0}")]
    Schema(String),
}

fn conflict_message(conflicts: &[Conflict]) -> String {
    if let [only] = conflicts {
        return format!("Apply failed with 1 conflict: conflict with {}: {}", only.manager, only.field);
    }
    let mut managers: Vec<_> = conflicts.iter().map(|conflict| conflict.manager.as_str()).collect();
    managers.sort_unstable();
    managers.dedup();
    let mut lines = Vec::new();
    for manager in managers {
        lines.push(format!("conflicts with {manager}:"));
        let fields = conflicts.iter().filter(|conflict| conflict.manager == manager);
        lines.extend(fields.map(|conflict| format!("- {}", conflict.field)));
    }
    format!("Apply failed with {} conflicts: {}", conflicts.len(), lines.join("\n"))
}

/// The live object (`None`: there is none yet) with a configuration applied, `managedFields` included.
/// If nothing changes the result equals the live object.
///
/// # Errors
/// Conflicts unless `force`; a configuration that does not fit its schema.
pub fn apply(
    live: Option<&Value>,
    config: &Value,
    request: &Request<'_>,
    force: bool,
) -> Result<Value, ApplyError> {
    let empty = nothing(request);
    let stored = live.unwrap_or(&empty);
    let mut entries = managers::read(stored);
    let base = without_managed(stored);
    if live.is_some() && entries.is_empty() {
        entries.extend(before_first_apply(&base, request));
    }
    let config = without_managed(config);
    if let Some(why) = request.ty.and_then(|ty| faults(&config, ty)) {
        return Err(ApplyError::Schema(why));
    }
    let applied = FieldSet::from_value(&config, request.ty).map_err(ApplyError::Schema)?;
    let merged = merge(&base, &config, request.ty).map_err(ApplyError::Schema)?;
    let mut own = new_entry(request, Operation::Apply);
    own.fields = owned(applied.clone(), request);
    let at = entries.iter().position(|entry| entry.same_owner(&own));
    let before = at.map(|at| entries.remove(at));
    let pruned = match &before {
        Some(before) if !before.fields.is_empty() => {
            prune(&merged, &entries, &applied, &before.fields, request.ty)
        }
        _ => merged,
    };
    let comparison = compare(&base, &pruned, request.ty);
    settle(&mut entries, &noticed(&comparison, request), force)?;
    if comparison.is_same() {
        own.time = before.and_then(|before| before.time);
    }
    entries.push(own);
    let mut result = pruned;
    drop_emptied(&mut result, &config, request.ty);
    managers::write(&mut result, entries);
    Ok(result)
}

/// Records a write that is no apply: what changed from `old` (`None`: created) to `new` belongs to the
/// request's manager from now on. Replaces `new`'s `managedFields`.
pub fn track_update(old: Option<&Value>, new: &mut Value, request: &Request<'_>) {
    let empty = nothing(request);
    let stored = old.unwrap_or(&empty);
    let mut entries = managers::read(stored);
    if let Some(metadata) = new.get_mut("metadata").and_then(Value::as_object_mut) {
        // The record itself is no change. It is written anew below.
        match stored.pointer("/metadata/managedFields") {
            Some(record) => metadata.insert("managedFields".into(), record.clone()),
            None => metadata.remove("managedFields"),
        };
    }
    let comparison = compare(stored, new, request.ty);
    // Forced, so there is nothing to fail.
    let _ = settle(&mut entries, &comparison, true);
    let mut own = new_entry(request, Operation::Update);
    own.fields = owned(comparison.modified.union(&comparison.added), request);
    if !own.fields.is_empty() {
        match entries.iter_mut().find(|entry| entry.same_owner(&own)) {
            Some(entry) => {
                entry.fields = entry.fields.union(&own.fields);
                entry.time = own.time;
            }
            None => entries.push(own),
        }
    }
    managers::write(new, entries);
}

/// The object before it is created.
fn nothing(request: &Request<'_>) -> Value {
    request.ty.map_or_else(|| Value::Object(Default::default()), zero_value)
}

fn new_entry(request: &Request<'_>, operation: Operation) -> Entry {
    Entry {
        manager: request.manager.to_owned(),
        operation,
        api_version: request.api_version.to_owned(),
        subresource: request.subresource.to_owned(),
        time: Some(request.now.to_owned()),
        fields: FieldSet::default(),
    }
}

/// An object without a record belongs to a manager of this name when apply first meets it.
fn before_first_apply(base: &Value, request: &Request<'_>) -> Option<Entry> {
    let comparison = compare(&nothing(request), base, request.ty);
    let fields = owned(comparison.added.union(&comparison.modified), request);
    let entry =
        Entry { manager: "before-first-apply".into(), fields, ..new_entry(request, Operation::Update) };
    (!entry.fields.is_empty()).then_some(entry)
}

fn without_managed(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}

/// The set without what nobody owns and what the endpoint ignores.
fn owned(mut set: FieldSet, request: &Request<'_>) -> FieldSet {
    for path in UNOWNED {
        set.remove_tree(path);
    }
    for field in request.ignored {
        let path: Vec<String> = field.split('.').map(|part| format!("f:{part}")).collect();
        set.remove_tree(&path.iter().map(String::as_str).collect::<Vec<_>>());
    }
    if !request.only.is_empty() {
        let path: Vec<String> = request.only.split('.').map(|part| format!("f:{part}")).collect();
        let mut others = set.clone();
        others.remove_tree(&path.iter().map(String::as_str).collect::<Vec<_>>());
        set = set.difference(&others);
    }
    let mut metadata_only = FieldSet::default();
    metadata_only.insert(&["f:metadata".to_owned()]);
    set.difference(&metadata_only)
}

/// The changes that count: what the endpoint ignores is put back afterwards, and so nobody loses it.
fn noticed(comparison: &Comparison, request: &Request<'_>) -> Comparison {
    let mut noticed = comparison.clone();
    for field in request.ignored {
        let path: Vec<String> = field.split('.').map(|part| format!("f:{part}")).collect();
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        for set in [&mut noticed.added, &mut noticed.modified, &mut noticed.removed] {
            set.remove_tree(&path);
        }
    }
    noticed
}

/// Takes changed fields away from their owners, or reports them as conflicts.
fn settle(entries: &mut [Entry], comparison: &Comparison, force: bool) -> Result<(), ApplyError> {
    let changed = comparison.modified.union(&comparison.added);
    let mut conflicts = Vec::new();
    for entry in entries.iter_mut() {
        let lost = entry.fields.intersection(&changed);
        let manager = entry.to_string();
        conflicts.extend(lost.paths().into_iter().map(|field| Conflict { manager: manager.clone(), field }));
        if !lost.is_empty() {
            entry.fields = entry.fields.difference(&lost);
        }
        if !comparison.removed.is_empty() {
            entry.fields = entry.fields.difference(&comparison.removed);
        }
    }
    match conflicts.is_empty() || force {
        true => Ok(()),
        false => Err(ApplyError::Conflicts(conflicts)),
    }
}

/// Removes what the manager applied before and no longer does, except what others own.
fn prune(
    merged: &Value,
    others: &[Entry],
    own: &FieldSet,
    before: &FieldSet,
    ty: Option<TypeRef<'_>>,
) -> Value {
    let take = |set: &FieldSet| without(merged, set, ty).unwrap_or_else(|| Value::Object(Default::default()));
    let named = |value: &Value| FieldSet::from_value(value, ty).unwrap_or_default().with_named_fields(ty);
    let all = named(merged);
    let before = before.with_named_fields(ty);
    let managed =
        others.iter().fold(own.clone(), |set, entry| set.union(&entry.fields)).with_named_fields(ty);
    let pruned = take(&before);
    let pruned = take(&all.difference(&named(&pruned).union(&managed)));
    take(&all.difference(&named(&pruned)).intersection(&before))
}

#[cfg(test)]
mod tests;
