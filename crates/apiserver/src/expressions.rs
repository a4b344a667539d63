//! The CEL expressions of webhook configurations and policies, each compiled once.

use std::{collections::HashMap, sync::LazyLock};

use parking_lot::Mutex;
use tiphys_expr::cel::Expression;

/// The variables of expressions in webhook configurations and policies.
pub(crate) const VARIABLES: [&str; 8] = [
    "object",
    "oldObject",
    "request",
    "params",
    "namespaceObject",
    "variables",
    "authorizer",
    "authorizer.requestResource",
];

/// How many compiled expressions are kept.
const KEPT: usize = 4096;

type Compiled = HashMap<String, Result<Expression, String>>;

static COMPILED: LazyLock<Mutex<Compiled>> = LazyLock::new(Mutex::default);

/// Compiles an expression, or finds what was compiled before.
pub(crate) fn compile(source: &str) -> Result<Expression, String> {
    let mut known = COMPILED.lock();
    if known.len() > KEPT {
        known.clear();
    }
    let made = known.entry(source.to_owned());
    made.or_insert_with(|| Expression::compile(source, &VARIABLES).map_err(|e| e.to_string())).clone()
}
