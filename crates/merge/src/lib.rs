//! The five ways in which Kubernetes changes an object: JSON patch, merge patch, strategic merge
//! patch, three-way merge of a configuration, and server-side apply with its record of who owns
//! which field. All are functions of their input.
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod apply;
mod json_patch;
mod merge_patch;
mod strategic;
mod three_way;

pub use json_patch::{JsonPatchError, json_patch};
pub use merge_patch::{create_merge_patch, merge_patch};
pub use strategic::{RejectionKind, StrategicError, go_print, strategic_merge};
pub use three_way::{three_way_merge_patch, two_way_strategic_patch};
