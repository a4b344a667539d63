//! The commands, one file each.

pub mod app;
pub mod appset;
pub mod check;
pub mod completion;
pub mod controller;
pub mod diff;
pub mod doctor;
pub mod dump;
pub mod graph;
pub mod health;
pub mod man;
pub mod migrate;
pub mod rehearse;
pub mod render;
pub mod render_app;
pub mod render_helm;
pub mod render_kustomize;
pub mod shadow;
pub mod twin;
pub mod up;
pub mod version;
pub mod why;
