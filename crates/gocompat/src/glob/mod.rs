//! The languages of globs in Argo CD: Go's `path.Match` ([`path_match`]), that of projects, sync windows and
//! rules ([`Glob`]), that of lists of files ([`doublestar`]), and Git's ([`pathspec`]).

mod compiled;
mod doublestar;
mod path;

pub use compiled::Glob;
pub use doublestar::{doublestar, pathspec};
pub use path::path_match;

/// Longest pattern that is read, in bytes, as long as a path may be (`PATH_MAX` of Linux). A match takes time with the
/// pattern and with the text.
const MAX_PATTERN: usize = 4096;

/// Refuses what is longer than any path.
fn check_length(pattern: &str) -> Result<(), BadPattern> {
    if pattern.len() > MAX_PATTERN { Err(BadPattern) } else { Ok(()) }
}

/// A pattern that is malformed (`path.ErrBadPattern`), or longer than any path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("syntax error in pattern")]
pub struct BadPattern;
