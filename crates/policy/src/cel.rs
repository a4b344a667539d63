//! Expressions in CEL that judge an object: conditions, variables and validations (Kubernetes documentation,
//! "Validating Admission Policy").

use std::collections::HashMap;

use tiphys_expr::cel::{self, Environment, Expression};
use tiphys_value::{ObjectExt, Value, json};

use crate::{
    request::{Namespace, Request},
    verdict::Verdict,
};

/// The variables that expressions may name. Of who asks nothing is known, nor of parameters.
const VARIABLES: [&str; 5] = ["object", "oldObject", "request", "namespaceObject", "variables"];

/// The expressions of a policy, as the policy has them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expressions<'a> {
    /// What has to hold for the rest to count (`name`, `expression`).
    pub(crate) conditions: &'a [Value],
    /// What others name as `variables.NAME` (`name`, `expression`), in their order.
    pub(crate) variables: &'a [Value],
    /// What has to hold (`expression`, `message`, `messageExpression`).
    pub(crate) validations: &'a [Value],
}

impl Expressions<'_> {
    /// What they say of an object. One that cannot be evaluated here decides nothing.
    pub(crate) fn judge(&self, request: &Request<'_>) -> Verdict {
        let known = known_variables(request);
        let environment = Environment::new(known.clone());
        for condition in self.conditions {
            match holds(text(condition, "expression"), &environment) {
                Some(true) => {}
                Some(false) => return Verdict::Passes,
                None => return Verdict::Unknown,
            }
        }
        let mut own = HashMap::new();
        for variable in self.variables {
            let names =
                known.iter().cloned().chain([("variables".to_owned(), cel::Value::from(own.clone()))]);
            let environment = Environment::new(names);
            // One that has no value fails where it is named.
            if let Some(value) = evaluate(text(variable, "expression"), &environment) {
                own.insert(text(variable, "name").to_owned(), value);
            }
        }
        let environment =
            Environment::new(known.into_iter().chain([("variables".to_owned(), cel::Value::from(own))]));
        let mut is_known = true;
        for validation in self.validations {
            match holds(text(validation, "expression"), &environment) {
                Some(true) => {}
                Some(false) => return Verdict::Refuses(None, message(validation, &environment)),
                None => is_known = false,
            }
        }
        if is_known { Verdict::Passes } else { Verdict::Unknown }
    }
}

/// The variables of a request that are known.
fn known_variables(request: &Request<'_>) -> Vec<(String, cel::Value)> {
    let mut seen = vec![
        ("object".to_owned(), cel::plain(&request.object)),
        ("oldObject".to_owned(), cel::plain(&Value::Null)),
        ("request".to_owned(), cel::plain(&request.variables())),
    ];
    if let Namespace::Labels(labels) = request.namespace {
        let mut namespace = json!({"metadata": {"name": request.object.namespace()}});
        if let Some(labels) = labels {
            namespace["metadata"]["labels"] = labels.clone();
        }
        seen.push(("namespaceObject".to_owned(), cel::plain(&namespace)));
    }
    seen
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value.get(field).and_then(Value::as_str).unwrap_or_default().trim()
}

fn evaluate(source: &str, environment: &Environment<'_>) -> Option<cel::Value> {
    Expression::compile(source, &VARIABLES).ok()?.evaluate(environment).ok()
}

fn holds(source: &str, environment: &Environment<'_>) -> Option<bool> {
    Expression::compile(source, &VARIABLES).ok()?.holds(environment).ok()
}

fn message(validation: &Value, environment: &Environment<'_>) -> String {
    let made = match text(validation, "messageExpression") {
        "" => None,
        source => match evaluate(source, environment) {
            Some(cel::Value::String(made)) => Some(made.trim().to_owned()),
            _ => None,
        },
    };
    made.filter(|it| !it.is_empty()).unwrap_or_else(|| text(validation, "message").to_owned())
}
