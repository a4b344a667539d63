//! What is known of the fields of a kind.

use serde_json::Value;
use tiphys_schema::{Catalog, StructuralSchema, TypeRef, apply_defaults, decode};
use tiphys_value::{GroupVersionKind, ObjectExt};

/// The fields of a kind: how its lists and maps are merged, and what the API server makes of a field that is
/// not given.
#[derive(Clone, Copy)]
pub enum Fields<'a> {
    /// Of a kind that the API server brings.
    BuiltIn(TypeRef<'a>),
    /// Of a custom resource, by its definition.
    Custom(&'a StructuralSchema),
}

impl Fields<'static> {
    /// Those of a built-in kind; `None` if it is no such kind.
    pub fn built_in(kind: &GroupVersionKind) -> Option<Self> {
        Catalog::latest().type_of(kind).map(Self::BuiltIn)
    }
}

impl<'a> Fields<'a> {
    /// Those of a kind, of which a schema is known if it is a custom resource; `None` if nothing is.
    pub fn for_kind(kind: &GroupVersionKind, schema: Option<&'a StructuralSchema>) -> Option<Self> {
        schema.map(Self::Custom).or_else(|| Fields::built_in(kind))
    }

    pub(crate) fn types(self) -> TypeRef<'a> {
        match self {
            Self::BuiltIn(types) => types,
            Self::Custom(schema) => schema.type_ref(Catalog::latest()),
        }
    }

    /// Whether empty and absent are the same for fields that do not say otherwise.
    pub(crate) fn drops_empty(self) -> bool {
        matches!(self, Self::BuiltIn(_))
    }

    /// The object as the API server would store it, with its defaults.
    pub(crate) fn with_defaults(self, object: &Value) -> Value {
        let mut filled = object.clone();
        match self {
            Self::BuiltIn(types) => {
                // What would be refused keeps its form.
                if decode(types, &mut filled).is_err() {
                    filled.clone_from(object);
                }
                apply_defaults(&object.gvk(), &mut filled);
            }
            Self::Custom(schema) => schema.apply_defaults(&mut filled),
        }
        filled
    }
}
