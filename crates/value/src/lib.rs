//! Kubernetes objects as data: JSON values, the names that identify them, paths into them, and
//! where every field came from. Pure: no IO, no clock.
//!
//! The value tree is [`serde_json::Value`]; `ARCHITECTURE.md` ("One value type") says why. Maps are
//! unordered in meaning: whoever prints one sorts its keys.
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod bounded_json;
mod budget;
mod field_path;
mod go_names;
mod install_order;
pub mod label_selector;
mod names;
mod object;
mod origin;
mod packed_object;
mod render_limits;
pub mod taint;
mod value_reader;

pub use bounded_json::{JsonError, json_prefix_within, json_stream_within, json_within};
pub use budget::{Budget, OverBudget, VALUE_BYTES, map_bytes, origin_bytes, value_bytes};
pub use field_path::{FieldPath, ParseFieldPathError, Segment, pointer_step};
pub use go_names::{go_type, json_kind};
pub use install_order::INSTALL_ORDER;
pub use names::{GroupKind, GroupVersionKind, GroupVersionResource, ResourceKey};
pub use object::ObjectExt;
pub use origin::{Location, Origin, OriginKind, Origins, RenderedObject};
pub use packed_object::Resting;
pub use render_limits::RenderLimits;
pub use serde_json::{Map, Number, Value, json};
pub use value_reader::{Reading, ValueReader};
