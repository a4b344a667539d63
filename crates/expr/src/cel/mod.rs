//! CEL as the API server evaluates it (kubernetes.io, "Common Expression Language in Kubernetes").

mod authorizer;
mod convert;
mod cost;
mod definition;
mod expression;
mod field_check;
mod functions;
mod json;
mod literals;
mod macros;
mod names;
mod rules;

pub use authorizer::{Decide, Query, authorizer};
pub use convert::{by_schema, by_type, plain};
pub use expression::{CompileError, Environment, EvaluationError, Expression};
pub use json::to_json;
pub use kube_cel::cel::Value;
pub use rules::Rules;
