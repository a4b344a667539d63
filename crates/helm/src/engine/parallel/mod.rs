//! What a second thread does while a chart is rendered: it parses templates that the first one has not come
//! to, executes templates from the other end of their order, and reads what they rendered to.
//!
//! Nothing that is printed depends on it: whatever one thread alone would do differently is done again by one
//! thread.

mod executors;
mod parser;
mod work_split;
mod worker;

pub(super) use executors::{is_worth_it, render};
pub(crate) use parser::BackgroundParser;
pub(super) use parser::ParsedTemplates;
pub(crate) use worker::Worker;
