//! The targets. Each takes any bytes; what it cannot read as its kind of input it leaves.

mod charts;
mod cluster;
mod dump;
mod expressions;
mod renderings;
mod repository;
mod texts;

pub use charts::{archive, schema, template, values};
pub use cluster::{cluster, request};
pub use dump::dump;
pub use expressions::{cel, ignore, policy, settings};
pub use renderings::{applicationset, kustomization};
pub use repository::repository;
pub use texts::{glob, message, patch, yaml};
