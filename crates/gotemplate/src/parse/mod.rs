//! Parsing of templates.

mod lex;
mod nameless;
mod node;
mod number;
mod parser;
mod print;

pub use nameless::Nameless;
pub use node::Tree;
pub(crate) use node::{
    Branch, Call, Command, List, Name, Node, Number, Operand, Parts, Pipe, Span, Variable,
};
pub(crate) use parser::parse;
pub(crate) use print::Quoted;
