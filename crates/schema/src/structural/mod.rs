//! Structural schemas of custom resources: validation, defaulting, pruning, and the check of the
//! `CustomResourceDefinition` that carries them (apiextensions-apiserver, `pkg/apiserver/schema`).

mod default;
mod definition;
mod formats;
mod keywords;
mod prune;
mod surface;
mod types;
mod validate;

use std::sync::Arc;

use serde_json::Value;

use crate::{Catalog, ErrorList, Type, TypeRef};

pub use definition::{crd_schemas, validate_crd};
pub use validate::prevents_rules;

/// How deep schemas and objects are followed.
const MAX_DEPTH: usize = 200;

/// The schema of one version of a custom resource; cheap to clone.
#[derive(Clone, Debug)]
pub struct StructuralSchema {
    root: Arc<Value>,
    ty: Arc<Type>,
    patterns: Arc<validate::Patterns>,
    has_rules: bool,
    has_defaults: bool,
}

impl StructuralSchema {
    /// Reads an `openAPIV3Schema` that [`validate_crd`] accepted.
    pub fn new(schema: &Value) -> Self {
        let mut rules = Vec::new();
        validate::collect_rules(schema, &crate::Path::root(), &mut rules, 0);
        Self {
            has_rules: !rules.is_empty(),
            has_defaults: default::any(schema, 0),
            root: Arc::new(schema.clone()),
            ty: Arc::new(types::object_type(schema, Catalog::latest())),
            patterns: Arc::new(validate::Patterns::from_schema(schema)),
        }
    }

    /// The schema as published.
    pub fn as_value(&self) -> &Value {
        &self.root
    }

    /// The type of objects, for server-side apply.
    pub fn type_ref<'a>(&'a self, catalog: &'a Catalog) -> TypeRef<'a> {
        TypeRef::new(catalog, &self.ty)
    }

    /// Faults of an object. With the stored object (`old`), faults of values that the update does not
    /// touch are forgiven (ratcheting).
    pub fn validate(&self, object: &Value, old: Option<&Value>) -> ErrorList {
        let mut errors = validate::validate(&self.root, &self.patterns, object, old);
        if self.has_rules {
            validate::remark_unchecked_rules(&mut errors);
        }
        errors
    }

    /// Whether any field has a default.
    pub fn has_defaults(&self) -> bool {
        self.has_defaults
    }

    /// Removes nulls that the schema neither allows nor has a default for; those in lists stay.
    pub fn remove_nulls(&self, object: &mut Value) {
        default::remove_nulls(&self.root, object, 0);
    }

    /// Sets the schema's defaults, and removes nulls that it does not allow.
    pub fn apply_defaults(&self, object: &mut Value) {
        self.remove_nulls(object);
        default::apply(&self.root, object);
    }

    /// Sets the schema's defaults only: what server-side apply leaves as null is no longer taken away.
    pub fn set_defaults(&self, object: &mut Value) {
        default::apply(&self.root, object);
    }

    /// Removes fields that the schema does not describe; returns their paths, such as `spec.foo`.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        prune::prune(&self.root, object)
    }

    /// The CEL rules of the schema (`x-kubernetes-validations`) as path and expression. They are
    /// published, but [`Self::validate`] does not evaluate them: whoever promises a verdict must say so.
    pub fn unevaluated_rules(&self) -> Vec<(String, String)> {
        let mut out = Vec::new();
        validate::collect_rules(&self.root, &crate::Path::root(), &mut out, 0);
        out
    }
}

/// The schema of a version of a `CustomResourceDefinition` object.
pub fn crd_version_schema(crd: &Value, version: &str) -> Option<StructuralSchema> {
    let mut versions = crd.pointer("/spec/versions")?.as_array()?.iter();
    let found = versions.find(|candidate| candidate["name"] == version)?;
    found.pointer("/schema/openAPIV3Schema").map(StructuralSchema::new)
}

/// Whether a schema's flag is set.
fn flag(schema: &Value, name: &str) -> bool {
    schema[name] == true
}

#[cfg(test)]
mod tests;
