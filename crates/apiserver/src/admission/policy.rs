//! ValidatingAdmissionPolicies: rules in CEL that bindings put in force.

use tiphys_expr::cel::{self, Environment};
use tiphys_value::{ObjectExt, Value};

use super::{Request, matching::typed};
use crate::{
    ApiError, ApiResult, Cause, Object,
    expressions::compile,
    ops::{Call, items},
    registry::Resource,
    store::ResourceId,
};

const GROUP: &str = "admissionregistration.k8s.io";
/// Longest message that an expression may make.
const MAX_MESSAGE: usize = 5 * 1024;

pub(super) type Variables = Vec<(String, cel::Value)>;

/// What a policy says against a write.
struct Denial {
    message: String,
    reason: String,
}

/// Refuses what a policy denies; warns where its binding says so.
pub(super) fn validate(request: &Request<'_>, call: &mut Call, object: Option<&Value>) -> ApiResult<()> {
    if request.at.resource.group() == GROUP {
        return Ok(());
    }
    let snapshot = request.server.snapshot();
    let mut first: Option<(String, Denial)> = None;
    for policy in snapshot.list(&ResourceId::new(GROUP, "validatingadmissionpolicies"), None) {
        let Some(resource) = fits(request, &policy["spec"]["matchConstraints"], object) else { continue };
        for binding in snapshot.list(&ResourceId::new(GROUP, "validatingadmissionpolicybindings"), None) {
            let is_of = binding.str_at(&["spec", "policyName"]) == Some(policy.name());
            if !is_of || !binding_fits(request, &binding["spec"]["matchResources"], object) {
                continue;
            }
            for denial in judge(request, call, policy, binding, &resource, object) {
                let start = format!(
                    "ValidatingAdmissionPolicy '{}' with binding '{}'",
                    policy.name(),
                    binding.name()
                );
                for action in items(binding, "/spec/validationActions").filter_map(Value::as_str) {
                    match action {
                        "Warn" => {
                            call.warnings.push(format!("Validation failed for {start}: {}", denial.message))
                        }
                        "Deny" => {
                            let message = format!("{start} denied request: {}", denial.message);
                            let reason = denial.reason.clone();
                            first.get_or_insert((message.clone(), Denial { message, reason }));
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    first.map_or(Ok(()), |(message, denial)| Err(refused(request, &message, &denial.reason)))
}

pub(super) fn refused(request: &Request<'_>, message: &str, reason: &str) -> ApiError {
    let (code, reason) = match reason {
        "Unauthorized" => (401, "Unauthorized"),
        "Forbidden" => (403, "Forbidden"),
        "RequestEntityTooLarge" => (413, "RequestEntityTooLarge"),
        _ => (422, "Invalid"),
    };
    let cause = Cause { message: message.to_owned(), ..Cause::default() };
    ApiError::forbidden(request.at.resource.object_named(&request.at.name), message)
        .with_code(code, reason)
        .with_cause(cause)
}

pub(super) fn fits(
    request: &Request<'_>,
    constraints: &Value,
    object: Option<&Value>,
) -> Option<std::sync::Arc<Resource>> {
    let exact = constraints.str_at(&["matchPolicy"]) == Some("Exact");
    let excluded: Vec<&Value> = items(constraints, "/excludeResourceRules").collect();
    if request.fits(&excluded, exact).is_some() {
        return None;
    }
    let rules: Vec<&Value> = items(constraints, "/resourceRules").collect();
    request.fits(&rules, exact).filter(|_| request.selected(constraints, object))
}

/// A binding without rules of its own takes what its policy takes.
pub(super) fn binding_fits(request: &Request<'_>, matching: &Value, object: Option<&Value>) -> bool {
    if items(matching, "/resourceRules").next().is_some() {
        return fits(request, matching, object).is_some();
    }
    let exact = matching.str_at(&["matchPolicy"]) == Some("Exact");
    let excluded: Vec<&Value> = items(matching, "/excludeResourceRules").collect();
    request.fits(&excluded, exact).is_none() && request.selected(matching, object)
}

/// What a policy says against a write, for every parameter object of a binding.
fn judge(
    request: &Request<'_>,
    call: &Call,
    policy: &Object,
    binding: &Object,
    resource: &Resource,
    object: Option<&Value>,
) -> Vec<Denial> {
    let spec = &policy["spec"];
    let fails = spec.str_at(&["failurePolicy"]) != Some("Ignore");
    let failed = |message: String| match fails {
        true => vec![Denial { message, reason: String::new() }],
        false => Vec::new(),
    };
    let params = match params(request, policy, binding) {
        Ok(params) => params,
        Err(why) => return failed(format!("failed to configure binding: {why}")),
    };
    let mut base = request.variables(call, resource, object);
    let namespace = request.namespace().filter(|_| !request.at.is("", "namespaces"));
    base.push((
        "namespaceObject".into(),
        namespace.map_or(cel::plain(&Value::Null), |n| by_kind(request, &n)),
    ));
    let mut denials = Vec::new();
    for param in params {
        let mut variables = base.clone();
        let param = param.map_or(cel::plain(&Value::Null), |param| by_kind(request, &param));
        variables.push(("params".into(), param));
        match request.conditions_hold(spec, &Environment::new(variables.clone())) {
            Ok(true) => {}
            Ok(false) => continue,
            Err(why) => {
                denials.extend(failed(why));
                continue;
            }
        }
        denials.extend(decisions(spec, variables, fails));
    }
    denials
}

pub(super) fn by_kind(request: &Request<'_>, object: &Value) -> cel::Value {
    let registry = request.server.registry();
    registry.by_kind(&object.gvk()).map_or_else(|| cel::plain(object), |resource| typed(resource, object))
}

/// Evaluates the variables of a policy, in order; those that fail with why.
pub(super) fn own_variables(
    spec: &Value,
    variables: &Variables,
) -> (std::collections::HashMap<String, cel::Value>, Vec<(String, String)>) {
    let mut own = std::collections::HashMap::new();
    let mut broken: Vec<(String, String)> = Vec::new();
    for variable in items(spec, "/variables") {
        let of = |key| variable.str_at(&[key]).unwrap_or_default();
        let mut seen = variables.clone();
        seen.push(("variables".into(), cel::Value::from(own.clone())));
        let result = compile(of("expression"))
            .and_then(|e| e.evaluate(&Environment::new(seen)).map_err(|e| e.to_string()));
        match result {
            Ok(value) => drop(own.insert(of("name").to_owned(), value)),
            Err(why) => broken.push((of("name").to_owned(), why)),
        }
    }
    (own, broken)
}

/// Evaluates the variables of a policy and then its validations.
fn decisions(spec: &Value, mut variables: Variables, fails: bool) -> Vec<Denial> {
    let (own, broken) = own_variables(spec, &variables);
    variables.push(("variables".into(), cel::Value::from(own)));
    let environment = Environment::new(variables);
    let mut denials = Vec::new();
    for validation in items(spec, "/validations") {
        let source = validation.str_at(&["expression"]).unwrap_or_default();
        let reason = validation.str_at(&["reason"]).unwrap_or_default().to_owned();
        let result = compile(source).and_then(|e| e.holds(&environment).map_err(|e| e.to_string()));
        match result {
            Ok(true) => {}
            Ok(false) => denials.push(Denial { message: message_of(validation, &environment), reason }),
            Err(why) if fails => {
                let lacking = broken.iter().find(|(name, _)| source.contains(&format!("variables.{name}")));
                let why = match lacking {
                    Some((name, why)) => {
                        format!("composited variable {} fails to evaluate: {why}", tiphys_schema::quote(name))
                    }
                    None => why,
                };
                denials.push(Denial {
                    message: format!("expression '{source}' resulted in error: {why}"),
                    reason,
                });
            }
            Err(_) => {}
        }
    }
    denials
}

fn message_of(validation: &Value, environment: &Environment<'_>) -> String {
    let text = |key| validation.str_at(&[key]).map(str::trim).filter(|text| !text.is_empty());
    let made =
        text("messageExpression").and_then(|source| match compile(source).ok()?.evaluate(environment) {
            Ok(cel::Value::String(text)) => Some(text.trim().to_owned()),
            _ => None,
        });
    let made = made.filter(|text| !text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n'));
    made.or_else(|| text("message").map(str::to_owned))
        .unwrap_or_else(|| format!("failed expression: {}", text("expression").unwrap_or_default()))
}

/// The parameter objects of a binding: none is asked for, or every one that it names or selects.
pub(super) fn params(
    request: &Request<'_>,
    policy: &Object,
    binding: &Object,
) -> Result<Vec<Option<Value>>, String> {
    let Some(kind) = policy.at(&["spec", "paramKind"]).filter(|k| k.is_object()) else {
        return Ok(vec![None]);
    };
    let Some(reference) = binding.at(&["spec", "paramRef"]).filter(|r| r.is_object()) else {
        return Ok(vec![None]);
    };
    let gvk = tiphys_value::GroupVersionKind::from_api_version(kind.api_version(), kind.kind());
    let registry = request.server.registry();
    let resource = registry.by_kind(&gvk).ok_or_else(|| {
        format!(
            "failed to find resource referenced by paramKind: '{}, Kind={}'",
            kind.api_version(),
            kind.kind()
        )
    })?;
    let snapshot = request.server.snapshot();
    let namespace = match reference.str_at(&["namespace"]).filter(|n| !n.is_empty()) {
        _ if !resource.namespaced => "",
        Some(namespace) => namespace,
        None => request.at.namespace.as_str(),
    };
    let found: Vec<Option<Value>> = match reference.str_at(&["name"]).filter(|n| !n.is_empty()) {
        Some(name) => {
            let object = snapshot.get(&resource.id, namespace, name);
            object.map(|object| Some(object.value().clone())).into_iter().collect()
        }
        None => {
            let selector = tiphys_schema::LabelSelector::from_object(&reference["selector"]).ok().flatten();
            let all = snapshot.list(&resource.id, Some(namespace).filter(|n| !n.is_empty()));
            let chosen = all.filter(|object| {
                let labels = object.at(&["metadata", "labels"]).unwrap_or(&Value::Null);
                selector.as_ref().is_none_or(|selector| selector.matches(labels))
            });
            chosen.map(|object| Some(object.value().clone())).collect()
        }
    };
    if found.is_empty() && reference.str_at(&["parameterNotFoundAction"]) != Some("Allow") {
        return Err("no params found for policy binding with `Deny` parameterNotFoundAction".into());
    }
    Ok(found)
}
