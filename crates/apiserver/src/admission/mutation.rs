//! MutatingAdmissionPolicies: changes in CEL that bindings put in force.

use tiphys_expr::cel::{self, Environment};
use tiphys_merge::{apply, json_patch};
use tiphys_schema::{Catalog, TypeRef};
use tiphys_value::{ObjectExt, Value};

use super::{
    Operation, Request,
    policy::{self, Variables},
};
use crate::{
    ApiResult, Object,
    expressions::compile,
    meta,
    ops::{self, Call, items},
    registry::Resource,
    store::ResourceId,
};

const GROUP: &str = "admissionregistration.k8s.io";

/// Changes an object as the policies say that fit the request.
pub(super) fn mutate(request: &Request<'_>, call: &Call, object: &mut Value) -> ApiResult<()> {
    if request.at.resource.group() == GROUP || request.operation == Operation::Delete {
        return Ok(());
    }
    let snapshot = request.server.snapshot();
    for policy in snapshot.list(&ResourceId::new(GROUP, "mutatingadmissionpolicies"), None) {
        for binding in snapshot.list(&ResourceId::new(GROUP, "mutatingadmissionpolicybindings"), None) {
            if binding.str_at(&["spec", "policyName"]) != Some(policy.name()) {
                continue;
            }
            let constraints = &policy["spec"]["matchConstraints"];
            let Some(resource) = policy::fits(request, constraints, Some(object)) else { continue };
            if !policy::binding_fits(request, &binding["spec"]["matchResources"], Some(object)) {
                continue;
            }
            if let Err(why) = apply_policy(request, call, policy, binding, &resource, object)
                && policy.str_at(&["spec", "failurePolicy"]) != Some("Ignore")
            {
                let start = format!(
                    "policy '{}' with binding '{}' denied request: {why}",
                    policy.name(),
                    binding.name()
                );
                return Err(policy::refused(request, &start, ""));
            }
        }
    }
    Ok(())
}

fn apply_policy(
    request: &Request<'_>,
    call: &Call,
    policy: &Object,
    binding: &Object,
    resource: &Resource,
    object: &mut Value,
) -> Result<(), String> {
    let spec = &policy["spec"];
    let params = policy::params(request, policy, binding)
        .map_err(|why| format!("failed to configure binding: {why}"))?;
    for param in params {
        for mutation in items(spec, "/mutations") {
            let mut variables = request.variables(call, resource, Some(object));
            let namespace = request.namespace().filter(|_| !request.at.is("", "namespaces"));
            let namespace =
                namespace.map_or(cel::plain(&Value::Null), |found| policy::by_kind(request, &found));
            variables.push(("namespaceObject".into(), namespace));
            let shown =
                param.as_ref().map_or(cel::plain(&Value::Null), |param| policy::by_kind(request, param));
            variables.push(("params".into(), shown));
            if !request.conditions_hold(spec, &Environment::new(variables.clone()))? {
                break;
            }
            let next = one_mutation(spec, mutation, variables, resource, object)?;
            *object = next;
            ops::redecode(request.at, &request.at.resource, object)
                .map_err(|error| error.message().to_owned())?;
        }
    }
    Ok(())
}

/// The object with one mutation; its metadata that the server keeps stays.
fn one_mutation(
    spec: &Value,
    mutation: &Value,
    mut variables: Variables,
    resource: &Resource,
    object: &Value,
) -> Result<Value, String> {
    let (own, _) = policy::own_variables(spec, &variables);
    variables.push(("variables".into(), cel::Value::from(own)));
    let environment = Environment::new(variables);
    let evaluate = |key: &str| {
        let source = mutation.str_at(&[key, "expression"]).unwrap_or_default();
        let made = compile(source)?.evaluate(&environment).map_err(|error| error.to_string())?;
        cel::to_json(&made).ok_or_else(|| format!("expression '{source}' makes no object"))
    };
    let mut next = match mutation.str_at(&["patchType"]) {
        Some("ApplyConfiguration") => configured(object, evaluate("applyConfiguration")?, resource)?,
        Some("JSONPatch") => {
            json_patch(object, &evaluate("jsonPatch")?).map_err(|error| format!("JSON Patch: {error}"))?
        }
        other => return Err(format!("unsupported patch type {}", other.unwrap_or_default())),
    };
    meta::copy(&mut next, object, "managedFields");
    Ok(next)
}

/// Server-side apply of what an expression made; nobody owns it.
fn configured(object: &Value, mut configuration: Value, resource: &Resource) -> Result<Value, String> {
    let catalog = Catalog::latest();
    let ty: Option<TypeRef<'_>> = match &resource.custom {
        Some(custom) => custom.schema.as_ref().map(|schema| schema.type_ref(catalog)),
        None => catalog.type_of(&object.gvk()),
    };
    for key in ["apiVersion", "kind"] {
        configuration[key] = object[key].clone();
    }
    meta::set(&mut configuration, "name", object.name());
    let api_version = object.api_version().to_owned();
    let request = apply::Request {
        ty,
        manager: "mutating-admission-policy",
        api_version: &api_version,
        subresource: "",
        now: "1970-01-01T00:00:00Z",
        ignored: &[],
        only: "",
    };
    let mut base = object.clone();
    meta::metadata_mut(&mut base).remove("managedFields");
    apply::apply(Some(&base), &configuration, &request, true).map_err(|error| error.to_string())
}
