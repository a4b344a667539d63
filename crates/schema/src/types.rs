//! The types of fields: what a value may be, and how lists and maps of it are merged.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use serde_json::Value;
use tiphys_value::GroupVersionKind;

use crate::Catalog;

/// The type of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// Text.
    Str,
    /// Truth value.
    Bool,
    /// Whole number of 32 bits.
    I32,
    /// Whole number of 64 bits.
    I64,
    /// Floating-point number.
    F64,
    /// Binary data, base64 in JSON.
    Bytes,
    /// RFC 3339 time in whole seconds.
    Time,
    /// RFC 3339 time in microseconds.
    MicroTime,
    /// Resource quantity, such as `100m`.
    Quantity,
    /// A whole number or text.
    IntOrString,
    /// Anything; replaced as a whole.
    Any,
    /// Anything; objects are merged key by key, lists replaced (undescribed parts of custom resources).
    Open,
    /// A named definition of the catalog.
    Ref(u32),
    /// An object described in place (custom resources).
    Object(Arc<Definition>),
    /// A list.
    List(Box<Type>, ListKind),
    /// An object with free keys; `true` if it is replaced as a whole.
    Map(Box<Type>, bool),
}

/// How two versions of a list are merged (`x-kubernetes-list-type`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListKind {
    /// Replaced as a whole.
    Atomic,
    /// A set of scalars.
    Set,
    /// Objects identified by these fields.
    Map(Vec<String>),
}

/// An object type with named fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Definition {
    /// Name in OpenAPI, such as `io.k8s.api.apps.v1.Deployment`; empty when described in place.
    pub name: String,
    /// The kind whose objects (or request bodies) have this type, if it is exactly one.
    pub gvk: Option<GroupVersionKind>,
    /// Fields by their JSON names.
    pub fields: BTreeMap<String, Field>,
    /// Whether the object is replaced as a whole (`x-kubernetes-map-type: atomic`).
    pub atomic: bool,
    /// Whether fields that are not described are kept, and by which type they are known.
    pub others: Option<Type>,
}

/// A field of a [`Definition`].
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Type of the value.
    pub ty: Type,
    /// Whether OpenAPI says that it must be given.
    pub required: bool,
    /// Whether an explicit zero (`0`, `""`, `false`) differs from absence.
    pub pointer: bool,
    /// Whether the field is written even when it is empty.
    pub kept: bool,
    /// Whether the object is merged field by field here, though objects of its type are replaced as a whole
    /// (`x-kubernetes-map-type: granular`).
    pub granular: bool,
    /// The default that OpenAPI declares.
    pub default: Option<Value>,
    /// Allowed values, where OpenAPI lists them.
    pub allowed: Vec<String>,
    /// The key by which strategic merge identifies list items.
    pub merge_key: Option<String>,
    /// Strategic merge's `patchStrategy`.
    pub strategy: PatchStrategy,
    /// Where the field stands in its struct, from 0.
    pub position: usize,
    /// The Go type, where that is or consists of a named scalar, such as `[]v1.KeyUsage`.
    pub go_type: Option<String>,
    /// The embedded structs that the field comes from, outermost first.
    pub embedded: Vec<String>,
}

/// Strategic merge's directives for a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PatchStrategy {
    /// Lists are merged, not replaced.
    pub merge: bool,
    /// Keys that the patch does not name are removed.
    pub retain_keys: bool,
    /// Objects are replaced, not merged.
    pub replace: bool,
}

impl Field {
    /// An optional field without further attributes.
    pub fn plain(ty: Type) -> Self {
        Self {
            ty,
            required: false,
            pointer: false,
            kept: false,
            granular: false,
            default: None,
            allowed: Vec::new(),
            merge_key: None,
            strategy: PatchStrategy::default(),
            position: 0,
            go_type: None,
            embedded: Vec::new(),
        }
    }
}

/// A type together with the catalog that resolves its references; cheap to copy.
#[derive(Clone, Copy, Debug)]
pub struct TypeRef<'a> {
    /// The catalog that named definitions are looked up in.
    pub catalog: &'a Catalog,
    /// The type.
    pub ty: &'a Type,
    /// Whether the field that it is the type of is merged field by field, whatever the type says.
    granular: bool,
}

impl<'a> TypeRef<'a> {
    /// A type of a catalog.
    pub fn new(catalog: &'a Catalog, ty: &'a Type) -> Self {
        Self { catalog, ty, granular: false }
    }

    /// The object type behind this one, if it has named fields.
    pub fn definition(self) -> Option<&'a Definition> {
        match self.ty {
            Type::Ref(id) => Some(self.catalog.definition_by_id(*id)),
            Type::Object(definition) => Some(definition),
            _ => None,
        }
    }

    /// The type of a field or map value; `None` if it is not described.
    pub fn field(self, name: &str) -> Option<TypeRef<'a>> {
        if let Type::Map(value, _) = self.ty {
            return Some(self.with(value));
        }
        if *self.ty == Type::Open {
            return Some(self);
        }
        let definition = self.definition()?;
        match definition.fields.get(name) {
            Some(field) => Some(TypeRef { granular: field.granular, ..self.with(&field.ty) }),
            None => definition.others.as_ref().map(|ty| self.with(ty)),
        }
    }

    /// The attributes of a named field.
    pub fn field_info(self, name: &str) -> Option<&'a Field> {
        self.definition()?.fields.get(name)
    }

    /// The type of list items.
    pub fn items(self) -> Option<TypeRef<'a>> {
        match self.ty {
            Type::List(item, _) => Some(self.with(item)),
            _ => None,
        }
    }

    /// How two versions of the list are merged, if this is a list.
    pub fn list_kind(self) -> Option<&'a ListKind> {
        match self.ty {
            Type::List(_, kind) => Some(kind),
            _ => None,
        }
    }

    /// Whether an object of this type is replaced as a whole.
    pub fn is_atomic_object(self) -> bool {
        match self.ty {
            Type::Map(_, atomic) => *atomic,
            Type::Any => true,
            _ => !self.granular && self.definition().is_some_and(|definition| definition.atomic),
        }
    }

    /// The default of a list item's key field (such as `protocol: TCP`), used to identify items.
    ///
    /// Of built-in kinds, what is always written has the zero of its type.
    pub fn key_default(self, name: &str) -> Option<&'a Value> {
        static ZEROS: LazyLock<[Value; 2]> = LazyLock::new(|| [Value::from(""), Value::from(0)]);
        let field = self.field_info(name)?;
        let zero = match field.ty {
            _ if !field.kept || field.pointer => None,
            Type::Str => Some(&ZEROS[0]),
            Type::I32 | Type::I64 => Some(&ZEROS[1]),
            _ => None,
        };
        field.default.as_ref().or(zero)
    }

    fn with(self, ty: &'a Type) -> TypeRef<'a> {
        TypeRef::new(self.catalog, ty)
    }
}
