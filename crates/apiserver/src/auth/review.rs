//! Reviews: questions about who may do what, which are created but never stored.

use tiphys_schema::{ErrorList, FieldError, Path};
use tiphys_value::{ObjectExt, Value, json};

use super::{
    User,
    rbac::reason_of,
    rbac::{Attributes, is_allowed, rules_for},
    token::{ISSUER, TokenFault, authenticate_for},
};
use crate::{
    ApiError, ApiResult, ApiServer,
    ops::{At, items},
};

/// Answers a review of any kind.
pub(crate) fn review(server: &ApiServer, user: &User, at: &At, mut body: Value) -> ApiResult<Value> {
    let spec = body.get("spec").cloned().unwrap_or_default();
    let kind = at.resource.gvk.kind.as_str();
    check(kind, at, &spec)?;
    if kind == "LocalSubjectAccessReview" {
        body["metadata"]["namespace"] = at.namespace.as_str().into();
    }
    body["status"] = match kind {
        "SelfSubjectAccessReview" => access(server, user, &spec),
        "SubjectAccessReview" | "LocalSubjectAccessReview" => access(server, &subject(&spec), &spec),
        "SelfSubjectRulesReview" => rules(server, user, spec.str_at(&["namespace"]).unwrap_or_default()),
        "SelfSubjectReview" => json!({"userInfo": info(user)}),
        "TokenReview" => token(server, &spec),
        other => return Err(ApiError::internal(format!("no review of kind {other}"))),
    };
    if kind == "SelfSubjectRulesReview" {
        body["spec"] = json!({});
    }
    body["metadata"]["creationTimestamp"] = Value::Null;
    Ok(body)
}

/// Faults of a question.
fn check(kind: &str, at: &At, spec: &Value) -> ApiResult<()> {
    match kind {
        "TokenReview" if spec.str_at(&["token"]).unwrap_or_default().is_empty() => {
            return Err(ApiError::bad_request("token is required for TokenReview in authentication"));
        }
        "SelfSubjectRulesReview" if spec.str_at(&["namespace"]).unwrap_or_default().is_empty() => {
            return Err(ApiError::bad_request("no namespace on request"));
        }
        "SelfSubjectAccessReview" | "SubjectAccessReview" | "LocalSubjectAccessReview" => {}
        _ => return Ok(()),
    }
    let path = Path::new("spec");
    let (mut errors, mut outside) = (ErrorList::new(), ErrorList::new());
    let has = |key: &str| spec.get(key).is_some_and(Value::is_object);
    match (has("resourceAttributes"), has("nonResourceAttributes")) {
        (true, true) => {
            let of = |key| spec.str_at(&["nonResourceAttributes", key]).unwrap_or_default();
            let value = json!({"Path": of("path"), "Verb": of("verb")});
            let detail = "cannot be specified in combination with resourceAttributes";
            errors.push(FieldError::invalid(&path.child("nonResourceAttributes"), value, detail));
        }
        (false, false) => {
            let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            errors.push(FieldError::invalid(&path.child("resourceAttributes"), Value::Null, detail));
        }
        _ => {}
    }
    let nobody =
        spec.str_at(&["user"]).unwrap_or_default().is_empty() && items(spec, "/groups").next().is_none();
    if kind != "SelfSubjectAccessReview" && nobody {
        let detail = "at least one of user or group must be specified";
        errors.push(FieldError::invalid(&path.child("user"), "", detail));
    }
    if kind == "LocalSubjectAccessReview" && has("nonResourceAttributes") {
        let of = |key| spec.str_at(&["nonResourceAttributes", key]).unwrap_or_default();
        let value = json!({"Path": of("path"), "Verb": of("verb")});
        let path = path.child("nonResourceAttributes");
        outside.push(FieldError::invalid(&path, value, "disallowed on this kind of request"));
    }
    if kind == "LocalSubjectAccessReview" && has("resourceAttributes") {
        let namespace = spec.str_at(&["resourceAttributes", "namespace"]).unwrap_or_default();
        if namespace != at.namespace {
            let path = path.child("resourceAttributes").child("namespace");
            errors.push(FieldError::invalid(&path, namespace, "must match metadata.namespace"));
        }
    }
    errors.extend(outside);
    if errors.is_empty() {
        return Ok(());
    }
    // The API server names no kind here, and its clients have learned to read that.
    Err(ApiError::invalid(&tiphys_value::GroupKind::new("authorization.k8s.io", ""), "", &errors))
}

fn access(server: &ApiServer, user: &User, spec: &Value) -> Value {
    let text = |keys: [&str; 2]| spec.str_at(&keys).unwrap_or_default().to_owned();
    let wish = if spec.get("nonResourceAttributes").is_some_and(Value::is_object) {
        Attributes {
            verb: text(["nonResourceAttributes", "verb"]),
            path: text(["nonResourceAttributes", "path"]),
            ..Attributes::default()
        }
    } else {
        let of = |key| text(["resourceAttributes", key]);
        let (resource, sub) = (of("resource"), of("subresource"));
        Attributes {
            verb: of("verb"),
            group: of("group"),
            resource: if sub.is_empty() { resource } else { format!("{resource}/{sub}") },
            namespace: of("namespace"),
            name: of("name"),
            path: String::new(),
        }
    };
    let snapshot = server.snapshot();
    let mut status = json!({"allowed": is_allowed(&snapshot, user, &wish)});
    if let Some(reason) = reason_of(&snapshot, user, &wish) {
        status["reason"] = reason.into();
    }
    status
}

fn subject(spec: &Value) -> User {
    let groups = items(spec, "/groups").filter_map(Value::as_str).map(str::to_owned).collect();
    User {
        name: spec.str_at(&["user"]).unwrap_or_default().into(),
        uid: String::new(),
        groups,
        ..User::default()
    }
}

fn rules(server: &ApiServer, user: &User, namespace: &str) -> Value {
    let snapshot = server.snapshot();
    let everything = [
        json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}),
        json!({"verbs": ["*"], "nonResourceURLs": ["*"]}),
    ];
    let mut found = rules_for(&snapshot, user, namespace);
    if user.is_admin() {
        found.extend(everything.iter());
    }
    let (paths, resources): (Vec<&Value>, Vec<&Value>) =
        found.into_iter().partition(|rule| rule.get("nonResourceURLs").is_some());
    json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": false})
}

fn info(user: &User) -> Value {
    let mut info = json!({"username": user.name, "groups": user.groups});
    if !user.uid.is_empty() {
        info["uid"] = user.uid.as_str().into();
    }
    if !user.extra.is_empty() {
        info["extra"] = json!(user.extra);
    }
    info
}

fn token(server: &ApiServer, spec: &Value) -> Value {
    let token = spec.str_at(&["token"]).unwrap_or_default();
    let mut audiences: Vec<&str> = items(spec, "/audiences").filter_map(Value::as_str).collect();
    if audiences.is_empty() {
        audiences.push(ISSUER);
    }
    match authenticate_for(server, Some(&format!("Bearer {token}")), &audiences) {
        Ok((user, audiences)) => json!({"authenticated": true, "user": info(&user), "audiences": audiences}),
        Err(TokenFault::Audience(own)) => {
            let list = |names: Vec<&str>| {
                names.iter().map(|name| tiphys_schema::quote(name)).collect::<Vec<_>>().join(" ")
            };
            let (own, asked) = (list(own.iter().map(String::as_str).collect()), list(audiences));
            let why = format!("token audiences [{own}] is invalid for the target audiences [{asked}]");
            json!({"user": {}, "error": format!("[invalid bearer token, {why}]")})
        }
        // What is no token of a service account is not looked at as one.
        Err(_) if token.split('.').count() != 3 => json!({"user": {}, "error": "invalid bearer token"}),
        Err(_) => {
            json!({"user": {}, "error": "[invalid bearer token, service account token has expired or is unknown]"})
        }
    }
}
