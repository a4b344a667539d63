//! `authorizer`: questions about who may do what (Kubernetes' CEL library of that name).

use std::{fmt, sync::Arc};

use kube_cel::cel::{Context, ExecutionError, Value, extractors::This, objects::Opaque};

/// One question. A query about a path has no resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// API group.
    pub group: String,
    /// Plural resource name.
    pub resource: String,
    /// Subresource, or empty.
    pub subresource: String,
    /// Namespace, or empty for all.
    pub namespace: String,
    /// Object name, or empty for all.
    pub name: String,
    /// Path that is no resource, or empty.
    pub path: String,
    /// Verb.
    pub verb: String,
    /// `namespace/name` of the service account that is asked about; the request's user if not given.
    pub service_account: Option<String>,
}

/// What decides.
pub type Decide = Arc<dyn Fn(&Query) -> bool + Send + Sync>;

/// An authorizer with a question that is still being put together, or the answer to it.
#[derive(Clone)]
struct Step {
    query: Query,
    decide: Decide,
    allowed: Option<bool>,
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.query.fmt(f)
    }
}

impl PartialEq for Step {
    fn eq(&self, other: &Self) -> bool {
        self.query == other.query && self.allowed == other.allowed
    }
}

impl Eq for Step {}

impl Opaque for Step {
    fn runtime_type_name(&self) -> &str {
        "kubernetes.authorization.Authorizer"
    }
}

/// The variable `authorizer`, or with a query begun `authorizer.requestResource`.
pub fn authorizer(query: Query, decide: Decide) -> Value {
    Value::Opaque(Arc::new(Step { query, decide, allowed: None }))
}

fn step(value: &Value) -> Result<&Step, ExecutionError> {
    match value {
        Value::Opaque(opaque) => opaque.downcast_ref::<Step>().ok_or(ExecutionError::NoSuchOverload),
        _ => Err(ExecutionError::NoSuchOverload),
    }
}

fn with(this: &Value, change: impl FnOnce(&mut Query)) -> Result<Value, ExecutionError> {
    let mut next = step(this)?.clone();
    change(&mut next.query);
    Ok(Value::Opaque(Arc::new(next)))
}

type Setter = fn(&mut Query, String);

/// Registers the functions of the library.
pub(super) fn register(context: &mut Context<'_>) {
    let setters: [(&str, Setter); 6] = [
        ("group", |query, text| query.group = text),
        ("resource", |query, text| query.resource = text),
        ("subresource", |query, text| query.subresource = text),
        ("namespace", |query, text| query.namespace = text),
        ("name", |query, text| query.name = text),
        ("path", |query, text| query.path = text),
    ];
    for (name, set) in setters {
        context.add_function(name, move |This(this): This<Value>, text: Arc<String>| {
            with(&this, |query| set(query, text.to_string()))
        });
    }
    context.add_function(
        "serviceAccount",
        |This(this): This<Value>, namespace: Arc<String>, name: Arc<String>| {
            with(&this, |query| query.service_account = Some(format!("{namespace}/{name}")))
        },
    );
    context.add_function("check", |This(this): This<Value>, verb: Arc<String>| {
        let mut next = step(&this)?.clone();
        next.query.verb = verb.to_string();
        next.allowed = Some((next.decide)(&next.query));
        Ok::<Value, ExecutionError>(Value::Opaque(Arc::new(next)))
    });
    context.add_function("allowed", |This(this): This<Value>| {
        Ok::<Value, ExecutionError>(Value::Bool(step(&this)?.allowed == Some(true)))
    });
    context.add_function("errored", |This(this): This<Value>| step(&this).map(|_| Value::Bool(false)));
    for name in ["reason", "error"] {
        context.add_function(name, |This(this): This<Value>| {
            step(&this).map(|_| Value::String(Arc::new(String::new())))
        });
    }
}
