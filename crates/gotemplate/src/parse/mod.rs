//! Parsing of templates.

mod action_cache;
mod batch;
mod lex;
mod node;
mod number;
mod outline;
mod parser;
mod pipeline;
mod print;

pub use batch::{CallableNames, Draft, Nameless, Parsing};
pub(crate) use node::{Branch, Call, Command, List, Name, Node, Number, Operand, Pipe, Span, Variable};
pub use node::{Parts, Tree};
pub use outline::{BranchKind, Pipeline, Step, Term};
pub(crate) use print::Quoted;

#[cfg(test)]
mod tests;
