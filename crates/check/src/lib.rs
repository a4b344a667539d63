//! `tiphys check`: what will break, told from a repository alone. A [`Rule`] looks at a [`Survey`] and
//! reports [`Finding`]s; one rule is one file under `rules/`, whose module comment is its documentation.

mod finding;
mod rule;
pub mod rules;
mod run;

pub use finding::{Confidence, Finding, Fix};
pub use rule::{Context, Report, Rule};
pub use run::{Checked, check};
pub use tiphys_diag::{Diagnostic, Severity};
pub use tiphys_graph::Survey;
