//! The record of owners: `metadata.managedFields`.

use std::fmt;

use serde_json::{Map, Value, json};

use super::set::FieldSet;

/// Updates are merged into one entry beyond this number of entries.
const MAX_UPDATE_ENTRIES: usize = 10;
/// The manager that such merged entries get.
const ANCIENT: &str = "ancient-changes";

/// How a manager came to own its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Server-side apply.
    Apply,
    /// Any other write.
    Update,
}

/// One owner and its fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Field manager.
    pub manager: String,
    /// How it owns.
    pub operation: Operation,
    /// Version that the fields are written in.
    pub api_version: String,
    /// Subresource through which it wrote; empty for the object itself.
    pub subresource: String,
    /// When the fields last changed, RFC 3339.
    pub time: Option<String>,
    /// The fields.
    pub fields: FieldSet,
}

impl Entry {
    /// Whether two entries are of one owner. An applier is the same in every version.
    pub(super) fn same_owner(&self, other: &Self) -> bool {
        self.manager == other.manager
            && self.operation == other.operation
            && self.subresource == other.subresource
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }
}

/// The owner as conflict messages name it.
impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", tiphys_schema::quote(&self.manager))?;
        if !self.subresource.is_empty() {
            write!(f, " with subresource {}", tiphys_schema::quote(&self.subresource))?;
        }
        if self.operation == Operation::Update {
            write!(f, " using {}", self.api_version)?;
        }
        Ok(())
    }
}

/// Reads `metadata.managedFields`; entries that cannot be read are left out.
pub(super) fn read(object: &Value) -> Vec<Entry> {
    let list = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    let text = |entry: &Value, key: &str| entry[key].as_str().unwrap_or_default().to_owned();
    let read = |entry: &Value| {
        let operation = match entry["operation"].as_str()? {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return None,
        };
        Some(Entry {
            manager: text(entry, "manager"),
            operation,
            api_version: text(entry, "apiVersion"),
            subresource: text(entry, "subresource"),
            time: entry["time"].as_str().map(str::to_owned),
            fields: FieldSet::from_fields_v1(&entry["fieldsV1"]),
        })
    };
    list.into_iter().flatten().filter_map(read).collect()
}

/// Writes `metadata.managedFields` in the server's order; without entries the field goes away.
pub(super) fn write(object: &mut Value, mut entries: Vec<Entry>) {
    entries.retain(|entry| !entry.fields.is_empty());
    merge_oldest(&mut entries);
    entries.sort_by(|a, b| order(a).cmp(&order(b)));
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    if entries.is_empty() {
        metadata.remove("managedFields");
    } else {
        metadata.insert("managedFields".into(), entries.iter().map(to_value).collect());
    }
}

fn order(entry: &Entry) -> (Operation, &str, &str, &str, &str) {
    let time = entry.time.as_deref().unwrap_or_default();
    (entry.operation, time, &entry.manager, &entry.api_version, &entry.subresource)
}

/// Keeps the number of update entries bounded: the oldest are merged, per version.
fn merge_oldest(entries: &mut Vec<Entry>) {
    let is_update = |entry: &Entry| entry.operation == Operation::Update;
    let surplus = entries.iter().filter(|entry| is_update(entry)).count().saturating_sub(MAX_UPDATE_ENTRIES);
    if surplus == 0 {
        return;
    }
    entries.sort_by(|a, b| order(a).cmp(&order(b)));
    let first = entries.iter().position(is_update).unwrap_or_default();
    for old in entries.drain(first..=first + surplus).collect::<Vec<_>>() {
        let bucket = entries.iter_mut().find(|e| e.manager == ANCIENT && e.api_version == old.api_version);
        match bucket {
            Some(bucket) => bucket.fields = bucket.fields.union(&old.fields),
            None => entries.push(Entry { manager: ANCIENT.into(), subresource: String::new(), ..old }),
        }
    }
}

fn to_value(entry: &Entry) -> Value {
    let mut map = Map::new();
    map.insert("manager".into(), json!(entry.manager));
    map.insert(
        "operation".into(),
        json!(if entry.operation == Operation::Apply { "Apply" } else { "Update" }),
    );
    map.insert("apiVersion".into(), json!(entry.api_version));
    if !entry.subresource.is_empty() {
        map.insert("subresource".into(), json!(entry.subresource));
    }
    map.extend(entry.time.as_ref().map(|time| ("time".to_owned(), json!(time))));
    map.insert("fieldsType".into(), json!("FieldsV1"));
    map.insert("fieldsV1".into(), entry.fields.to_fields_v1());
    Value::Object(map)
}
