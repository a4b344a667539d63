//! What the store holds: an object, its revision and, once asked for, its JSON text.

use std::{
    fmt,
    ops::Deref,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use tiphys_value::{Map, Value};

/// A stored object. Immutable: a change makes another one. Reads as its [`Value`].
pub struct Object {
    value: Value,
    revision: u64,
    json: OnceLock<Bytes>,
}

impl Object {
    /// An object that will never be stored: the answer to a dry run.
    pub(crate) fn unstored(value: Value) -> Self {
        let revision =
            value["metadata"]["resourceVersion"].as_str().and_then(|r| r.parse().ok()).unwrap_or(0);
        Self { value, revision, json: OnceLock::new() }
    }

    /// Writes the revision into `metadata.resourceVersion`.
    pub(crate) fn stamped(mut value: Value, revision: u64) -> Self {
        if let Some(root) = value.as_object_mut() {
            let metadata = root.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
            if let Some(metadata) = metadata.as_object_mut() {
                metadata.insert("resourceVersion".into(), revision.to_string().into());
            }
        }
        Self { value, revision, json: OnceLock::new() }
    }

    /// The object as data.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// `metadata.resourceVersion` as a number.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The object as JSON; made once and shared.
    pub fn json(&self) -> Bytes {
        self.json.get_or_init(|| Bytes::from(self.value.to_string())).clone()
    }
}

impl Deref for Object {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.value
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

/// Under what objects are stored: a group and a plural name, whatever the version. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceId(Arc<(String, String)>);

impl ResourceId {
    /// Makes an identity from group and plural name.
    pub fn new(group: impl Into<String>, resource: impl Into<String>) -> Self {
        Self(Arc::new((group.into(), resource.into())))
    }

    /// API group, empty for the core group.
    pub fn group(&self) -> &str {
        &self.0.0
    }

    /// Plural resource name.
    pub fn resource(&self) -> &str {
        &self.0.1
    }
}

/// `resource.group`, or `resource` in the core group.
impl fmt::Display for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.resource())?;
        if !self.group().is_empty() {
            write!(f, ".{}", self.group())?;
        }
        Ok(())
    }
}

impl fmt::Debug for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
