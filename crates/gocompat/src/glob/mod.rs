//! The languages of globs in Argo CD: Go's `path.Match` ([`path_match`]), that of projects, sync windows and
//! rules ([`Glob`]), that of lists of files ([`doublestar`]), and Git's ([`pathspec`]).

mod compiled;
mod doublestar;
mod path;

pub use compiled::Glob;
pub use doublestar::{doublestar, pathspec};
pub use path::path_match;

/// A pattern that is malformed (`path.ErrBadPattern`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("syntax error in pattern")]
pub struct BadPattern;
