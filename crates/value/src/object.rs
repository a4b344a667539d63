//! Reading the parts that every Kubernetes object has.

use crate::{GroupVersionKind, ResourceKey};
use serde_json::Value;

/// Accessors for the fields that every Kubernetes object has (API conventions, "Objects"). A field
/// that is absent or of another type reads as empty or `None`: judging that is the caller's.
pub trait ObjectExt {
    /// `apiVersion`, or empty.
    fn api_version(&self) -> &str;
    /// `kind`, or empty.
    fn kind(&self) -> &str;
    /// `metadata.name`, or empty.
    fn name(&self) -> &str;
    /// `metadata.namespace`, or empty.
    fn namespace(&self) -> &str;
    /// `metadata.uid`, or empty.
    fn uid(&self) -> &str;
    /// `metadata.resourceVersion`, or empty.
    fn resource_version(&self) -> &str;
    /// `metadata.generation`, or 0.
    fn generation(&self) -> i64;
    /// One annotation.
    fn annotation(&self, key: &str) -> Option<&str>;
    /// One label.
    fn label(&self, key: &str) -> Option<&str>;
    /// The objects that it belongs to: `metadata.ownerReferences`.
    fn owner_references(&self) -> &[Value];
    /// The one of these that controls it.
    fn controller_reference(&self) -> Option<&Value>;
    /// Whether `metadata.deletionTimestamp` is set.
    fn is_terminating(&self) -> bool;
    /// Group, version and kind from `apiVersion` and `kind`.
    fn gvk(&self) -> GroupVersionKind;
    /// Group, kind, namespace and name.
    fn resource_key(&self) -> ResourceKey;
    /// The value at a path of object keys.
    fn at(&self, keys: &[&str]) -> Option<&Value>;
    /// The string at a path of object keys.
    fn str_at(&self, keys: &[&str]) -> Option<&str>;
    /// The whole number at a path of object keys.
    fn int_at(&self, keys: &[&str]) -> Option<i64>;
}

impl ObjectExt for Value {
    fn api_version(&self) -> &str {
        self.str_at(&["apiVersion"]).unwrap_or_default()
    }

    fn kind(&self) -> &str {
        self.str_at(&["kind"]).unwrap_or_default()
    }

    fn name(&self) -> &str {
        self.str_at(&["metadata", "name"]).unwrap_or_default()
    }

    fn namespace(&self) -> &str {
        self.str_at(&["metadata", "namespace"]).unwrap_or_default()
    }

    fn uid(&self) -> &str {
        self.str_at(&["metadata", "uid"]).unwrap_or_default()
    }

    fn resource_version(&self) -> &str {
        self.str_at(&["metadata", "resourceVersion"]).unwrap_or_default()
    }

    fn generation(&self) -> i64 {
        self.int_at(&["metadata", "generation"]).unwrap_or_default()
    }

    fn annotation(&self, key: &str) -> Option<&str> {
        self.str_at(&["metadata", "annotations", key])
    }

    fn label(&self, key: &str) -> Option<&str> {
        self.str_at(&["metadata", "labels", key])
    }

    fn owner_references(&self) -> &[Value] {
        let listed = self.at(&["metadata", "ownerReferences"]).and_then(Value::as_array);
        listed.map_or(&[], Vec::as_slice)
    }

    fn controller_reference(&self) -> Option<&Value> {
        self.owner_references().iter().find(|owner| owner.get("controller") == Some(&Value::Bool(true)))
    }

    fn is_terminating(&self) -> bool {
        self.str_at(&["metadata", "deletionTimestamp"]).is_some()
    }

    fn gvk(&self) -> GroupVersionKind {
        GroupVersionKind::from_api_version(self.api_version(), self.kind())
    }

    fn resource_key(&self) -> ResourceKey {
        ResourceKey::new(self.gvk().group, self.kind(), self.namespace(), self.name())
    }

    fn at(&self, keys: &[&str]) -> Option<&Value> {
        keys.iter().try_fold(self, |value, key| value.get(key))
    }

    fn str_at(&self, keys: &[&str]) -> Option<&str> {
        self.at(keys)?.as_str()
    }

    fn int_at(&self, keys: &[&str]) -> Option<i64> {
        self.at(keys)?.as_i64()
    }
}
