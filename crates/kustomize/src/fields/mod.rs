//! Where transformers write: field specs, the defaults, and the configurations that extend them.

mod apply;
mod config;
mod defaults;

pub(crate) use apply::{Create, Route, apply};
pub(crate) use config::{NameReference, TransformerConfig, merge_specs};
