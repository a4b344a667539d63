//! Faults in what users wrote: where, what, why and what to do, and how they are shown.
//!
//! A [`Diagnostic`] is data; [`render`] turns it into text. Positions count lines and columns from
//! 1, columns in characters, as editors do.

mod chain;
mod diagnostic;
mod guard;
pub mod render;
pub mod show;
mod source_map;

pub use chain::chain;
pub use diagnostic::{Diagnostic, Edit, Label, Position, Severity, Span};
pub use guard::{Panicked, guarded};
pub use source_map::SourceMap;
