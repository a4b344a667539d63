//! Go's text/template and the Sprig functions: a parser with byte positions, an executor with Go's kinds of
//! values, Go's error texts, limits, and hooks that tell where each piece of output came from.
//!
//! A [`TemplateSet`] is parsed once, is `Send + Sync`, and is executed with a [`Value`] as often as needed.
//! Functions come from a [`Functions`] table, which callers extend. It knows nothing of Helm or Kubernetes.
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod builtins;
mod clock;
mod env;
mod error;
mod exec;
pub mod format;
mod function_sets;
mod functions;
pub mod json;
mod memo;
mod parse;
mod sprig;
mod template;
mod trace;
mod value;

pub use clock::{Clock, FixedClock, SystemClock};
pub use env::{Entropy, Env, Limits, SeededEntropy, SystemEntropy};
pub use error::{CallError, ExecError, Limit, ParseError, ParseFault};
pub use exec::Context;
pub use functions::{Function, Functions};
pub use memo::Memo;
pub use parse::{BranchKind, CallableNames, Draft, Nameless, Parsing, Parts, Pipeline, Step, Term, Tree};
pub use template::{MissingKey, TemplateSet, Text, TextContent};
pub use trace::{Part, Site, Tracer};
pub use value::{
    CallResult, Entry, Kind, List, ListType, Map, MapMethods, MapType, Object, OriginId, Signature, Type,
    Value, json::Numbers,
};
