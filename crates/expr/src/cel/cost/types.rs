//! The types of expressions, as far as costs depend on them.

use std::rc::Rc;

use super::declared::{Declared, Scalar, Shape};

/// The type of an expression.
#[derive(Clone, Debug)]
pub(super) enum Type<'a> {
    /// Not known, or anything.
    Dyn,
    Bool,
    /// Numbers, durations and points in time that a schema does not give a size: they have size 1.
    Scalar,
    String,
    Bytes,
    /// Values of Kubernetes' libraries, by name.
    Opaque(&'static str),
    Optional(Rc<Type<'a>>),
    List(Rc<Type<'a>>),
    /// Keys and values.
    Map(Rc<Type<'a>>, Rc<Type<'a>>),
    /// An object with fields.
    Object(&'a Declared),
}

impl<'a> Type<'a> {
    /// The type of a declaration.
    pub(super) fn from_declared(declared: &'a Declared) -> Self {
        match &declared.shape {
            Shape::Scalar(Scalar::Dyn) => Self::Dyn,
            Shape::Scalar(Scalar::Bool) => Self::Bool,
            Shape::Scalar(Scalar::String) => Self::String,
            Shape::Scalar(Scalar::Bytes) => Self::Bytes,
            Shape::Scalar(Scalar::Int | Scalar::Double | Scalar::Duration | Scalar::Timestamp) => {
                Self::Scalar
            }
            Shape::List(items) => Self::list(Self::from_declared(items)),
            Shape::Map(values) => Self::Map(Rc::new(Self::String), Rc::new(Self::from_declared(values))),
            Shape::Object(_) => Self::Object(declared),
        }
    }

    /// A list of something.
    pub(super) fn list(items: Self) -> Self {
        Self::List(Rc::new(items))
    }

    /// Something that may be missing.
    pub(super) fn optional(self) -> Self {
        Self::Optional(Rc::new(self))
    }

    /// Whether all values have the same size.
    pub(super) fn has_size_one(&self) -> bool {
        match self {
            Self::Bool | Self::Scalar => true,
            Self::Optional(inner) => inner.has_size_one(),
            _ => false,
        }
    }

    /// What the items of a list, and the values of a map, are.
    pub(super) fn parts(&self) -> Self {
        match self {
            Self::List(items) | Self::Map(_, items) => (**items).clone(),
            Self::Optional(inner) => inner.parts().optional(),
            _ => Self::Dyn,
        }
    }

    /// What a loop over it goes through.
    pub(super) fn steps(&self) -> Self {
        match self {
            Self::Map(keys, _) => (**keys).clone(),
            other => other.parts(),
        }
    }

    /// A field, or the value of a key.
    pub(super) fn field(&self, name: &str) -> Self {
        match self {
            Self::Object(Declared { shape: Shape::Object(fields), .. }) => {
                fields.get(name).map_or(Self::Dyn, Self::from_declared)
            }
            Self::Map(_, values) => (**values).clone(),
            Self::Optional(inner) => inner.field(name).optional(),
            _ => Self::Dyn,
        }
    }

    /// What an optional holds.
    pub(super) fn optional_value(&self) -> Self {
        match self {
            Self::Optional(inner) => (**inner).clone(),
            _ => Self::Dyn,
        }
    }

    /// The one of two types that says more.
    pub(super) fn or(self, other: Self) -> Self {
        match &self {
            Self::Dyn => other,
            Self::List(items) if matches!(**items, Self::Dyn) => other,
            Self::Optional(inner) if matches!(**inner, Self::Dyn) => other,
            _ => self,
        }
    }
}

/// The type of a call's result.
pub(super) fn of_call<'a>(name: &str, target: Option<&Type<'a>>, args: &[&Type<'a>]) -> Type<'a> {
    let first = || target.or(args.first().copied()).cloned().unwrap_or(Type::Dyn);
    let arg = |at: usize| args.get(at).map_or(Type::Dyn, |ty| (*ty).clone());
    match name {
        "_?_:_" => arg(1).or(arg(2)),
        "_+_" | "_-_" | "_*_" | "_/_" | "_%_" => arg(0).or(arg(1)),
        "-_" | "slice" | "distinct" | "reverse" | "sort" | "or" | "optional.ofNonZero" => first(),
        "_[_]" => arg(0).parts(),
        "_[?_]" => match arg(0).parts() {
            already @ Type::Optional(_) => already,
            other => other.optional(),
        },
        "sum" | "min" | "max" => first().parts(),
        "first" | "last" => first().parts().optional(),
        "value" => first().optional_value(),
        "orValue" => first().optional_value().or(arg(0)),
        "optional.of" | "optional.ofNonZeroValue" => arg(0).optional(),
        "optional.none" => Type::Dyn.optional(),
        "flatten" => first().parts(),
        "split" | "findAll" => Type::list(Type::String),
        "lists.range" => Type::list(Type::Scalar),
        "getQuery" => Type::Map(Rc::new(Type::String), Rc::new(Type::list(Type::String))),
        "string"
        | "charAt"
        | "lowerAscii"
        | "upperAscii"
        | "replace"
        | "substring"
        | "trim"
        | "join"
        | "format"
        | "strings.quote"
        | "find"
        | "getScheme"
        | "getHost"
        | "getHostname"
        | "getPort"
        | "getEscapedPath"
        | "jsonpatch.escapeKey"
        | "reason"
        | "error" => Type::String,
        "bytes" => Type::Bytes,
        "size" | "int" | "uint" | "double" | "timestamp" | "duration" | "indexOf" | "lastIndexOf"
        | "compareTo" | "sign" | "asInteger" | "asApproximateFloat" | "major" | "minor" | "patch"
        | "prefixLength" | "family" => Type::Scalar,
        name if name.starts_with("get") => Type::Scalar,
        "quantity" | "add" | "sub" => Type::Opaque("quantity"),
        "url" => Type::Opaque("url"),
        "ip" => Type::Opaque("ip"),
        "cidr" | "masked" => Type::Opaque("cidr"),
        "semver" => Type::Opaque("semver"),
        "format.named" => Type::Opaque("format").optional(),
        name if name.starts_with("format.") => Type::Opaque("format"),
        "validate" => Type::list(Type::String).optional(),
        "type" | "dyn" => Type::Dyn,
        _ => Type::Bool,
    }
}
