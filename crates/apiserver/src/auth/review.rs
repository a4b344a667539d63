//! Reviews: questions about who may do what, which are created but never stored.

use tiphys_value::{ObjectExt, Value, json};

use super::{
    User,
    rbac::{Attributes, is_allowed, rules_for},
    token::authenticate,
};
use crate::{ApiError, ApiResult, ApiServer, ops::items};

/// Answers a review of any kind.
pub(crate) fn review(server: &ApiServer, user: &User, kind: &str, mut body: Value) -> ApiResult<Value> {
    let spec = body.get("spec").cloned().unwrap_or_default();
    body["status"] = match kind {
        "SelfSubjectAccessReview" => access(server, user, &spec),
        "SubjectAccessReview" | "LocalSubjectAccessReview" => access(server, &subject(&spec), &spec),
        "SelfSubjectRulesReview" => rules(server, user, spec.str_at(&["namespace"]).unwrap_or_default()),
        "SelfSubjectReview" => json!({"userInfo": info(user)}),
        "TokenReview" => token(server, spec.str_at(&["token"]).unwrap_or_default()),
        other => return Err(ApiError::internal(format!("no review of kind {other}"))),
    };
    body["metadata"] = json!({"creationTimestamp": null});
    Ok(body)
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
    json!({"allowed": is_allowed(&snapshot, user, &wish)})
}

fn subject(spec: &Value) -> User {
    let groups = items(spec, "/groups").filter_map(Value::as_str).map(str::to_owned).collect();
    User { name: spec.str_at(&["user"]).unwrap_or_default().into(), uid: String::new(), groups }
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
    info
}

fn token(server: &ApiServer, token: &str) -> Value {
    match authenticate(server, Some(&format!("Bearer {token}"))) {
        Ok(user) => json!({"authenticated": true, "user": info(&user)}),
        Err(_) => {
            json!({"user": {}, "error": "[invalid bearer token, service account token has expired or is unknown]"})
        }
    }
}
