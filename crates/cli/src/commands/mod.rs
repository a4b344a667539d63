//! The commands, one file each.

pub mod completion;
pub mod render;
pub mod render_kustomize;
