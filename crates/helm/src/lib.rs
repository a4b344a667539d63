//! Helm charts, rendered exactly as `helm template` renders them: loading, values, dependencies,
//! templates, hooks and install order. Pure over a [`tiphys_vfs::FileTree`]: time, randomness and
//! the cluster are passed in.
//!
//! [`Chart::load`] reads a chart once; [`template`] renders it with [`RenderOptions`] as often as
//! wanted, keeping parsed templates.
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod capabilities;
mod chart;
mod completion;
mod dependencies;
mod engine;
mod error;
mod log_text;
mod name;
mod options;
mod origins;
mod output;
mod release;
mod resolver;
mod schema;
mod semver;
mod template;
mod values;

pub use capabilities::generic_version;
pub use chart::{Chart, ChartFile, Dependency, Lock, Maintainer, Metadata};
pub use completion::{ArchiveError, ChartArchive, ChartArchives, Completion, DependencyError, complete};
pub use engine::ClusterLookup;
pub use error::{HelmError, TemplateError};
pub use name::name_from_template;
pub use options::{Compat, FileRead, FixedClock, Questions, RenderOptions, Served, ValuesSource};
pub use output::{DocumentText, Hook, HookEvent, Manifest, TemplateOutput};
pub use resolver::{DependencyRequest, DependencyResolver};
pub use schema::SchemaLoader;
pub use template::{chart_warnings, check_options, template, template_with_warnings};
pub use values::set_file_paths;
