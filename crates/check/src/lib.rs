//! `tiphys check`: what will break, told from a repository alone. A [`Rule`] looks at a [`Survey`] and
//! reports [`Finding`]s; one rule is one file under `rules/`, whose module comment is its documentation.
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod assumptions;
mod baseline;
pub mod causes;
pub mod config;
mod finding;
pub mod impact;
pub mod output;
mod pages;
pub mod patch;
mod rule;
mod rule_helpers;
pub mod rules;
mod run;
mod support;
mod suppress;

pub use baseline::{Baseline, BaselineError};
pub use config::{Config, ConfigError, UnknownRule};
pub use finding::{Confidence, Finding, Fix, Respelling};
pub use pages::pages;
pub use rule::{Analyses, Context, Report, Rule};
pub use run::{Checked, Options, check, judge};
pub use tiphys_diag::{Diagnostic, Severity};
pub use tiphys_graph::Survey;
