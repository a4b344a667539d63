//! What is known of each Kubernetes kind: scope, names, field types, merge keys, defaults and
//! validation, as data derived from the real API server (`cargo xtask schema`) with hand-written
//! rules only where OpenAPI cannot say it; and the structural schemas of custom resources.
//!
//! Everything here is a function of its input: no IO, no clock.
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod catalog;
mod decode;
mod decode_time;
mod defaults;
mod error;
mod patch_decode;
pub mod pod_security;
mod quantity;
mod selector;
mod structural;
mod table;
mod types;
pub(crate) mod validate;

pub use catalog::{Catalog, Kind, Subresource};
pub use decode::{
    DecodeError, Decoded, TypeMismatch, decode, forget_empty, is_dropped, prune_unknown, zero_value,
};
pub use defaults::apply_defaults;
pub use error::{ErrorKind, ErrorList, FieldError, FieldRule, JsonType, Path, quote};
pub use patch_decode::restore;
pub use quantity::{ParseQuantityError, Quantity};
pub use selector::{LabelSelector, ParseSelectorError, Requirement};
pub use structural::{StructuralSchema, crd_schemas, crd_version_schema, prevents_rules, validate_crd};
pub use types::{Definition, Field, ListKind, PatchStrategy, Type, TypeRef};
pub use validate::{
    STATEFUL_SET_CHANGEABLE, internal_difference, names, validate_create, validate_event, validate_resize,
    validate_status_update, validate_update,
};
