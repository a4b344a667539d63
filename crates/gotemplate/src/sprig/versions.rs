//! Semantic versions.

use super::{add, text};
use crate::{CallError, CallResult, Clock, Functions, Kind, Object, Signature, Type, Value};
use smol_str::SmolStr;
use std::borrow::Cow;
use tiphys_gocompat::semver::{Constraints, Version};

const POINTER: &str = "*semver.Version";
const NONE: Signature = Signature::fixed(&[]);
const OTHER: Signature = Signature::fixed(&[Type::Named(POINTER)]);

pub(super) fn register(f: &mut Functions) {
    add(f, &["semverCompare"], &[Type::String, Type::String], |ctx, args| {
        let memo = &ctx.memo().versions;
        let asked = (SmolStr::new(text(args, 0)), SmolStr::new(text(args, 1)));
        let known = memo.borrow().get(&asked).copied();
        let fits = match known {
            Some(fits) => fits,
            None => {
                let fits = compare(&asked.0, &asked.1)?;
                memo.borrow_mut().insert(asked, fits);
                fits
            }
        };
        Ok(fits.into())
    });
    add(f, &["semver"], &[Type::String], |_, args| {
        let version = Version::parse(text(args, 0)).map_err(|error| CallError::new(error.to_string()))?;
        Ok(Value::object(VersionObject { version, pointer: true }))
    });
}

fn compare(constraint: &str, version: &str) -> Result<bool, CallError> {
    let constraint = Constraints::parse(constraint).map_err(|error| CallError::new(error.to_string()))?;
    let version = Version::parse(version).map_err(|error| CallError::new(error.to_string()))?;
    Ok(constraint.check(&version))
}

/// A version: by pointer, or by value as the `Inc` methods return it.
struct VersionObject {
    version: Version,
    pointer: bool,
}

fn second_version(args: &[Value]) -> Option<&Version> {
    match args.first() {
        Some(Value::Object(object)) => object.downcast_ref::<VersionObject>().map(|object| &object.version),
        _ => None,
    }
}

impl Object for VersionObject {
    fn type_name(&self) -> Cow<'static, str> {
        Cow::Borrowed(if self.pointer { POINTER } else { "semver.Version" })
    }

    fn kind(&self) -> Kind {
        if self.pointer { Kind::Pointer } else { Kind::Struct }
    }

    fn method(&self, name: &str) -> Option<Signature> {
        match name {
            "Major" | "Minor" | "Patch" | "Prerelease" | "Metadata" | "String" => Some(NONE),
            "IncMajor" | "IncMinor" | "IncPatch" => Some(NONE),
            "SetPrerelease" | "SetMetadata" => Some(Signature::fixed(&[Type::String])),
            "Original" if self.pointer => Some(NONE),
            "Compare" | "Equal" | "LessThan" | "LessThanEqual" | "GreaterThan" | "GreaterThanEqual"
                if self.pointer =>
            {
                Some(OTHER)
            }
            _ => None,
        }
    }

    fn call(&self, _clock: &dyn Clock, name: &str, args: &[Value]) -> CallResult {
        let version = &self.version;
        let by_value = |version| Ok(Value::object(VersionObject { version, pointer: false }));
        if let Some(other) = second_version(args) {
            let order = version.cmp(other);
            return Ok(match name {
                "Compare" => Value::Int(order as i64),
                "Equal" => order.is_eq().into(),
                "LessThan" => order.is_lt().into(),
                "LessThanEqual" => order.is_le().into(),
                "GreaterThan" => order.is_gt().into(),
                _ => order.is_ge().into(),
            });
        }
        match name {
            "Major" => Ok(Value::Uint64(version.major)),
            "Minor" => Ok(Value::Uint64(version.minor)),
            "Patch" => Ok(Value::Uint64(version.patch)),
            "Prerelease" => Ok(version.prerelease.as_str().into()),
            "Metadata" => Ok(version.metadata.as_str().into()),
            "Original" => Ok(version.original.as_str().into()),
            "String" => Ok(version.to_string().into()),
            "IncMajor" => by_value(version.increment(0)),
            "IncMinor" => by_value(version.increment(1)),
            "IncPatch" => by_value(version.increment(2)),
            "SetPrerelease" | "SetMetadata" => by_value(self.changed(name, text(args, 0))?),
            _ => Err(CallError::new("runtime error: invalid memory address or nil pointer dereference")),
        }
    }

    fn stringer(&self) -> Option<String> {
        Some(self.version.to_string())
    }

    fn to_json(&self) -> Value {
        self.version.to_string().into()
    }

    fn equals(&self, other: &dyn Object) -> bool {
        other.downcast_ref::<VersionObject>().is_some_and(|other| {
            self.version == other.version
                && self.version.metadata == other.version.metadata
                && self.version.original == other.version.original
        })
    }
}

impl VersionObject {
    fn changed(&self, name: &str, part: &str) -> Result<Version, CallError> {
        let mut next = self.version.clone();
        if name == "SetMetadata" { &mut next.metadata } else { &mut next.prerelease }.replace_range(.., part);
        let prefix = if self.version.original.starts_with('v') { "v" } else { "" };
        next.original = format!("{prefix}{next}");
        Version::parse(&next.original).map_err(|error| CallError::new(error.to_string()))?;
        Ok(next)
    }
}
