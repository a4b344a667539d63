//! The objects that a network is read from: rendered ones or live ones.

use serde_json::Value;
use tiphys_value::{ObjectExt, ResourceKey};

/// The position of an object among those that are looked at together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub usize);

/// An object with its key. The key's namespace may be one that only its Application names.
#[derive(Clone, Copy, Debug)]
pub struct Object<'a> {
    /// Its position.
    pub id: ObjectId,
    /// Group, kind, namespace and name.
    pub key: &'a ResourceKey,
    /// The object as data.
    pub value: &'a Value,
}

impl Object<'_> {
    /// `Kind/name`, with the namespace if it has one: `Service/web in shop`.
    pub fn title(&self) -> String {
        let (kind, name, namespace) = (self.value.kind(), self.value.name(), &self.key.namespace);
        if namespace.is_empty() { format!("{kind}/{name}") } else { format!("{kind}/{name} in {namespace}") }
    }
}
