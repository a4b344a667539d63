//! What an engine of policies is asked about: an object that is created, with the API server's defaults.

use serde_json::json;
use tiphys_schema::apply_defaults;
use tiphys_value::{GroupVersionKind, ObjectExt, Value};

/// What is known of the labels of an object's namespace.
#[derive(Clone, Copy, Debug)]
pub enum Namespace<'a> {
    /// They are these, or none.
    Labels(Option<&'a Value>),
    /// Nothing is known.
    Unknown,
}

/// An object that is created.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(crate) object: Value,
    pub(crate) gvk: GroupVersionKind,
    pub(crate) namespace: Namespace<'a>,
}

impl<'a> Request<'a> {
    /// Policies see what the API server has filled in.
    pub(crate) fn create(object: &Value, namespace: Namespace<'a>) -> Self {
        let (gvk, mut object) = (object.gvk(), object.clone());
        apply_defaults(&gvk, &mut object);
        Self { object, gvk, namespace }
    }

    pub(crate) fn kind(&self) -> &str {
        &self.gvk.kind
    }

    /// The name, or what it begins with if the server makes one up.
    pub(crate) fn name(&self) -> &str {
        match self.object.name() {
            "" => self.object.str_at(&["metadata", "generateName"]).unwrap_or_default(),
            name => name,
        }
    }

    /// The labels or annotations, if there are any.
    pub(crate) fn metadata(&self, field: &str) -> &Value {
        self.object.at(&["metadata", field]).unwrap_or(&Value::Null)
    }

    /// What expressions of policies see as `request`. Who asks is not known.
    pub(crate) fn variables(&self) -> Value {
        let GroupVersionKind { group, version, kind } = &self.gvk;
        json!({
            "operation": "CREATE",
            "object": self.object,
            "name": self.object.name(),
            "namespace": self.object.namespace(),
            "kind": {"group": group, "version": version, "kind": kind},
        })
    }
}
