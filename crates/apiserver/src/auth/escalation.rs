//! Nobody may grant what they do not hold (kubernetes.io, "Privilege escalation prevention").

use std::collections::BTreeSet;

use tiphys_schema::quote;
use tiphys_value::{ObjectExt, Value};

use super::{
    Attributes, User, is_allowed,
    rbac::{GROUP, role_rules, rule_covers, rules_for},
};
use crate::{
    ApiError, ApiResult, ApiServer, ResourceId,
    ops::{At, items},
};

/// Refuses a role or binding that would give more than its writer has.
pub(crate) fn check(
    server: &ApiServer,
    user: &User,
    at: &At,
    object: &Value,
    old: Option<&Value>,
) -> ApiResult<()> {
    if at.resource.id.group() != GROUP || user.is_admin() {
        return Ok(());
    }
    let is_role = at.resource.plural.ends_with("roles");
    if old.is_some_and(|old| without_bookkeeping(old) == without_bookkeeping(object)) {
        return Ok(());
    }
    let snapshot = server.snapshot();
    let (verb, resource, name, granted): (_, &str, &str, Vec<&Value>) = match is_role {
        true => ("escalate", &at.resource.plural, object.name(), items(object, "/rules").collect()),
        false => {
            let kind = object.str_at(&["roleRef", "kind"]).unwrap_or_default();
            let resource = if kind == "Role" { "roles" } else { "clusterroles" };
            let name = object.str_at(&["roleRef", "name"]).unwrap_or_default();
            ("bind", resource, name, role_rules(&snapshot, object, &at.namespace))
        }
    };
    let wish = Attributes {
        verb: verb.into(),
        group: GROUP.into(),
        resource: resource.into(),
        namespace: at.namespace.clone(),
        name: name.into(),
        path: String::new(),
    };
    if is_allowed(&snapshot, user, &wish) {
        return Ok(());
    }
    let home = if resource == "roles" { at.namespace.as_str() } else { "" };
    if !is_role && snapshot.get(&ResourceId::new(GROUP, resource), home, name).is_none() {
        return Err(ApiError::not_found(at.resource.object_named(name)));
    }
    let held = rules_for(&snapshot, user, &at.namespace);
    let missing: BTreeSet<String> = granted
        .iter()
        .flat_map(|rule| single(rule))
        .filter(|part| !held.iter().any(|own| rule_covers(own, part)))
        .map(|part| describe_rule(&part))
        .collect();
    if missing.is_empty() {
        return match is_role && [Some(object), old].into_iter().flatten().any(aggregates) {
            true => check_aggregation(at, object, &held),
            false => Ok(()),
        };
    }
    let groups = user.groups.iter().map(|group| quote(group)).collect::<Vec<_>>().join(" ");
    let missing = missing.into_iter().collect::<Vec<_>>().join("\n");
    let why = format!(
        "user {} (groups=[{groups}]) is attempting to grant RBAC permissions not currently held:\n{missing}",
        quote(&user.name)
    );
    Err(ApiError::forbidden(at.resource.object_named(object.name()), &why))
}

/// An object without what the garbage collector and the server itself write. Labels count: they put a role
/// into others.
fn without_bookkeeping(object: &Value) -> Value {
    const FIELDS: [&str; 5] =
        ["ownerReferences", "finalizers", "managedFields", "resourceVersion", "generation"];
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|field, _| !FIELDS.contains(&field.as_str()));
    }
    object
}

fn aggregates(role: &Value) -> bool {
    items(role, "/aggregationRule/clusterRoleSelectors").next().is_some()
}

/// A role that takes up the rules of others may come to hold anything: only who holds everything may write
/// one.
fn check_aggregation(at: &At, object: &Value, held: &[&Value]) -> ApiResult<()> {
    let everything = [
        tiphys_value::json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}),
        tiphys_value::json!({"nonResourceURLs": ["*"], "verbs": ["*"]}),
    ];
    if everything.iter().all(|part| held.iter().any(|own| rule_covers(own, part))) {
        return Ok(());
    }
    let why = "must have cluster-admin privileges to use the aggregationRule";
    Err(ApiError::forbidden(at.resource.object_named(object.name()), why))
}

/// A rule as rules of one resource or path each; verbs stay together where messages show them so.
fn single(rule: &Value) -> Vec<Value> {
    let list = |key: &str| rule[key].as_array().cloned().unwrap_or_default();
    let mut out = Vec::new();
    for verb in list("verbs") {
        for url in list("nonResourceURLs") {
            out.push(tiphys_value::json!({"nonResourceURLs": [url], "verbs": [verb]}));
        }
        for group in list("apiGroups") {
            for resource in list("resources") {
                let base =
                    tiphys_value::json!({"apiGroups": [group], "resources": [resource], "verbs": [verb]});
                let names = list("resourceNames");
                if names.is_empty() {
                    out.push(base.clone());
                }
                for name in names {
                    let mut one = base.clone();
                    one["resourceNames"] = Value::Array(vec![name]);
                    out.push(one);
                }
            }
        }
    }
    out
}

fn describe_rule(rule: &Value) -> String {
    let fields = [
        ("apiGroups", "APIGroups"),
        ("resources", "Resources"),
        ("nonResourceURLs", "NonResourceURLs"),
        ("resourceNames", "ResourceNames"),
        ("verbs", "Verbs"),
    ];
    let parts = fields.iter().filter_map(|(key, name)| {
        let values = rule[*key].as_array().filter(|values| !values.is_empty())?;
        let texts: Vec<String> = values.iter().map(|v| quote(v.as_str().unwrap_or_default())).collect();
        Some(format!("{name}:[{}]", texts.join(" ")))
    });
    format!("{{{}}}", parts.collect::<Vec<_>>().join(", "))
}
