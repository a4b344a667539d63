//! The commands, one file each.

pub(crate) mod app;
pub(crate) mod appset;
pub(crate) mod check;
pub(crate) mod completion;
pub(crate) mod controller;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod dump;
pub(crate) mod graph;
pub(crate) mod health;
pub(crate) mod man;
pub(crate) mod migrate;
pub(crate) mod rehearse;
pub(crate) mod render;
pub(crate) mod render_app;
pub(crate) mod render_helm;
pub(crate) mod render_kustomize;
pub(crate) mod shadow;
pub(crate) mod twin;
pub(crate) mod up;
pub(crate) mod version;
pub(crate) mod why;
