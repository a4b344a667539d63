//! Roles and bindings.

use serde_json::Value;

use super::{list, text};
use crate::{ErrorList, FieldError, Path};

const GROUP: &str = "rbac.authorization.k8s.io";

pub(super) fn role(kind: &str, role: &Value, errors: &mut ErrorList) {
    if role["aggregationRule"].is_object()
        && list(&role["aggregationRule"], "clusterRoleSelectors").is_empty()
    {
        let path = Path::new("aggregationRule.clusterRoleSelectors");
        let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        errors.push(FieldError::required(&path, detail));
    }
    let selectors = list(&role["aggregationRule"], "clusterRoleSelectors");
    for (at, selector) in selectors.iter().enumerate() {
        let path = Path::new("aggregationRule.clusterRoleSelectors").index(at);
        super::selector(selector, &path, errors);
        // The server makes a selector of it once more.
        if let Some(why) = super::selector_fault(selector) {
            errors.push(FieldError::invalid(&path, Value::Null, format!("invalid label selector. {why}")));
        }
    }
    for (at, rule) in list(role, "rules").iter().enumerate() {
        let path = Path::new("rules").index(at);
        if list(rule, "verbs").is_empty() {
            errors.push(FieldError::required(&path.child("verbs"), "verbs must contain at least one value"));
        }
        if !list(rule, "nonResourceURLs").is_empty() {
            if kind == "Role" {
                let detail = "namespaced rules cannot apply to non-resource URLs";
                let value = rule["nonResourceURLs"].clone();
                errors.push(FieldError::invalid(&path.child("nonResourceURLs"), value, detail));
            }
            if ["resources", "apiGroups", "resourceNames"].iter().any(|field| !list(rule, field).is_empty()) {
                let detail = "rules cannot apply to both regular resources and non-resource URLs";
                let value = rule["nonResourceURLs"].clone();
                errors.push(FieldError::invalid(&path.child("nonResourceURLs"), value, detail));
            }
            continue;
        }
        if list(rule, "apiGroups").is_empty() {
            let detail = "resource rules must supply at least one api group";
            errors.push(FieldError::required(&path.child("apiGroups"), detail));
        }
        if list(rule, "resources").is_empty() {
            let detail = "resource rules must supply at least one resource";
            errors.push(FieldError::required(&path.child("resources"), detail));
        }
    }
}

pub(super) fn binding(kind: &str, binding: &Value, errors: &mut ErrorList) {
    let (reference, path) = (&binding["roleRef"], Path::new("roleRef"));
    let group = text(reference, "apiGroup");
    if group != GROUP {
        errors.push(FieldError::not_supported(&path.child("apiGroup"), group, &[GROUP]));
    }
    let kinds: &[&str] = if kind == "RoleBinding" { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    if !kinds.contains(&text(reference, "kind")) {
        errors.push(FieldError::not_supported(&path.child("kind"), text(reference, "kind"), kinds));
    }
    if text(reference, "name").is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    } else {
        let name = text(reference, "name");
        super::faulty(super::names::path_segment(name), name, &path.child("name"), errors);
    }
    for (at, subject) in list(binding, "subjects").iter().enumerate() {
        one_subject(subject, kind == "RoleBinding", &Path::new("subjects").index(at), errors);
    }
}

fn one_subject(subject: &Value, namespaced: bool, path: &Path, errors: &mut ErrorList) {
    if text(subject, "name").is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    }
    let group = text(subject, "apiGroup");
    match text(subject, "kind") {
        "ServiceAccount" => {
            let name = text(subject, "name");
            if !name.is_empty() {
                super::faulty(super::names::dns1123_subdomain(name), name, &path.child("name"), errors);
            }
            if !group.is_empty() {
                errors.push(FieldError::not_supported(&path.child("apiGroup"), group, &[""]));
            }
            if !namespaced && text(subject, "namespace").is_empty() {
                errors.push(FieldError::required(&path.child("namespace"), ""));
            }
        }
        "User" | "Group" if group != GROUP => {
            errors.push(FieldError::not_supported(&path.child("apiGroup"), group, &[GROUP]));
        }
        "User" | "Group" => {}
        other => {
            let supported = ["ServiceAccount", "User", "Group"];
            errors.push(FieldError::not_supported(&path.child("kind"), other, &supported));
        }
    }
}
