//! Faults in what users wrote: where, what, why and what to do, and how they are shown.
//!
//! A [`Diagnostic`] is data; [`render`] turns it into text. Positions count lines and columns from
//! 1, columns in characters, as editors do.
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod diagnostic;
mod error_chain;
pub mod page;
mod panic_guard;
pub mod render;
pub mod sanitize;
pub mod similar_names;
mod source_map;

pub use diagnostic::{Diagnostic, Edit, Label, Position, Severity, Span};
pub use error_chain::chain;
pub use panic_guard::{Panicked, catch_panic};
pub use source_map::SourceMap;
