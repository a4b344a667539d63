//! Role-based access control over the roles and bindings in the store.

use tiphys_value::{GroupVersionResource, ObjectExt, Value};

use super::User;
use crate::{ApiError, ApiResult, ApiServer, Named, Snapshot, ops::items, store::ResourceId};

pub(super) const GROUP: &str = "rbac.authorization.k8s.io";

/// What somebody wants to do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attributes {
    pub verb: String,
    pub group: String,
    /// Plural name, with `/subresource` if there is one; empty for paths that are no resource.
    pub resource: String,
    pub namespace: String,
    pub name: String,
    /// The path of a request that is about no resource.
    pub path: String,
}

/// Paths that everybody may read.
const PUBLIC_PATHS: [&str; 6] = ["/healthz", "/livez", "/readyz", "/version", "/version/", "/.well-known/"];
/// Paths that everybody who is authenticated may read.
const DISCOVERY_PATHS: [&str; 6] = ["/api", "/api/", "/apis", "/apis/", "/openapi", "/openapi/"];

/// Why a ServiceAccount may not do something with objects, in the words of the API server. `None` if it may,
/// or if it is not known what it may: no role that is bound to it tells of the group that it is there for.
pub fn why_account_may_not(
    snapshot: &Snapshot,
    (namespace, account): (&str, &str),
    own_group: &str,
    verbs: &[&str],
    (target, target_namespace): (&GroupVersionResource, &str),
) -> Option<String> {
    let user = User::service_account(namespace, account, "");
    let rules = rules_for(snapshot, &user, target_namespace);
    let is_known = rules.iter().any(|rule| items(rule, "/apiGroups").any(|group| group == own_group));
    let wish = |verb: &str| Attributes {
        verb: verb.to_owned(),
        group: target.group.clone(),
        resource: target.resource.clone(),
        namespace: target_namespace.to_owned(),
        ..Attributes::default()
    };
    let may = |verb: &&str| rules.iter().any(|rule| rule_allows(rule, &wish(verb)));
    let first = verbs.first().filter(|_| is_known && !verbs.iter().any(may))?;
    Some(forbidden(&user, &wish(first)).message().to_owned())
}

/// Refuses what no role allows.
pub(crate) fn authorize(server: &ApiServer, user: &User, wish: &Attributes) -> ApiResult<()> {
    if is_allowed(&server.snapshot(), user, wish) { Ok(()) } else { Err(forbidden(user, wish)) }
}

/// What is said to somebody whom no role allows something.
fn forbidden(user: &User, wish: &Attributes) -> ApiError {
    let who = tiphys_schema::quote(&user.name);
    if wish.resource.is_empty() {
        let why = format!("User {who} cannot {} path {}", wish.verb, tiphys_schema::quote(&wish.path));
        return ApiError::forbidden(Named { group: "", resource: "", name: "" }, &why);
    }
    let scope = match wish.namespace.as_str() {
        "" => "at the cluster scope".to_owned(),
        namespace => format!("in the namespace {}", tiphys_schema::quote(namespace)),
    };
    let why = format!(
        "User {who} cannot {} resource {} in API group {} {scope}",
        wish.verb,
        tiphys_schema::quote(&wish.resource),
        tiphys_schema::quote(&wish.group)
    );
    let resource = wish.resource.split('/').next().unwrap_or_default();
    ApiError::forbidden(Named { group: &wish.group, resource, name: &wish.name }, &why)
}

/// Whether some role allows it.
pub(crate) fn is_allowed(snapshot: &Snapshot, user: &User, wish: &Attributes) -> bool {
    if user.is_admin() || is_open_path(user, wish) {
        return true;
    }
    rules_for(snapshot, user, &wish.namespace).iter().any(|rule| rule_allows(rule, wish))
}

fn is_open_path(user: &User, wish: &Attributes) -> bool {
    let reads = wish.verb == "get" && wish.resource.is_empty();
    let under = |paths: &[&str]| {
        paths.iter().any(|p| wish.path == *p || (p.ends_with('/') && wish.path.starts_with(p)))
    };
    let known = user.groups.iter().any(|g| g == "system:authenticated");
    let health = ["/livez/", "/readyz/", "/healthz/"];
    let self_review = known
        && wish.verb == "create"
        && matches!(
            (wish.group.as_str(), wish.resource.as_str()),
            ("authorization.k8s.io", "selfsubjectaccessreviews" | "selfsubjectrulesreviews")
                | ("authentication.k8s.io", "selfsubjectreviews")
        );
    let anybody = known || user.groups.iter().any(|g| g == "system:unauthenticated");
    let open = anybody && (under(&PUBLIC_PATHS) || under(&health));
    (reads && (open || (known && under(&DISCOVERY_PATHS)))) || self_review
}

/// Which binding allows it, in the words of the API server; none for administrators, whom no role binds.
pub(crate) fn reason_of(snapshot: &Snapshot, user: &User, wish: &Attributes) -> Option<String> {
    if user.is_admin() {
        return None;
    }
    let quoted = tiphys_schema::quote;
    let kinds = [
        ("clusterrolebindings", "ClusterRoleBinding", None),
        ("rolebindings", "RoleBinding", Some(wish.namespace.as_str())),
    ];
    for (plural, kind, namespace) in kinds {
        if namespace == Some("") {
            continue;
        }
        for binding in snapshot.list(&ResourceId::new(GROUP, plural), namespace) {
            let subject =
                items(binding, "/subjects").find(|s| is_subject(s, user, namespace.unwrap_or_default()));
            let Some(subject) = subject else { continue };
            let rules = role_rules(snapshot, binding, namespace.unwrap_or_default());
            if !rules.iter().any(|rule| rule_allows(rule, wish)) {
                continue;
            }
            let place = namespace.map(|n| format!("/{n}")).unwrap_or_default();
            let name = subject.str_at(&["name"]).unwrap_or_default();
            let who = match (subject.kind(), subject.str_at(&["namespace"])) {
                ("ServiceAccount", Some(own)) => quoted(&format!("{name}/{own}")),
                _ => quoted(name),
            };
            let role = binding.str_at(&["roleRef", "name"]).unwrap_or_default();
            let role_kind = binding.str_at(&["roleRef", "kind"]).unwrap_or_default();
            let binding_name = format!("{}{place}", binding.name());
            return Some(format!(
                "RBAC: allowed by {kind} {} of {role_kind} {} to {} {who}",
                quoted(&binding_name),
                quoted(role),
                subject.kind()
            ));
        }
    }
    None
}

/// All rules that hold for a user: cluster-wide ones and those of a namespace.
pub(crate) fn rules_for<'a>(snapshot: &'a Snapshot, user: &User, namespace: &str) -> Vec<&'a Value> {
    let mut rules = Vec::new();
    for binding in snapshot.list(&ResourceId::new(GROUP, "clusterrolebindings"), None) {
        if binds(binding, user, "") {
            rules.extend(role_rules(snapshot, binding, ""));
        }
    }
    if !namespace.is_empty() {
        for binding in snapshot.list(&ResourceId::new(GROUP, "rolebindings"), Some(namespace)) {
            if binds(binding, user, namespace) {
                rules.extend(role_rules(snapshot, binding, namespace));
            }
        }
    }
    rules
}

fn binds(binding: &Value, user: &User, namespace: &str) -> bool {
    items(binding, "/subjects").any(|subject| is_subject(subject, user, namespace))
}

fn is_subject(subject: &Value, user: &User, namespace: &str) -> bool {
    let name = subject.str_at(&["name"]).unwrap_or_default();
    match subject.kind() {
        "User" => name == user.name,
        "Group" => user.groups.iter().any(|g| g == name),
        "ServiceAccount" => {
            let own = subject.str_at(&["namespace"]).filter(|n| !n.is_empty()).unwrap_or(namespace);
            user.name == format!("system:serviceaccount:{own}:{name}")
        }
        _ => false,
    }
}

/// The rules of the role that a binding is about.
pub(super) fn role_rules<'a>(snapshot: &'a Snapshot, binding: &Value, namespace: &str) -> Vec<&'a Value> {
    let name = binding.str_at(&["roleRef", "name"]).unwrap_or_default();
    let (resource, namespace) = match binding.str_at(&["roleRef", "kind"]) {
        Some("Role") => ("roles", namespace),
        _ => ("clusterroles", ""),
    };
    let Some(role) = snapshot.get(&ResourceId::new(GROUP, resource), namespace, name) else {
        return Vec::new();
    };
    let mut rules: Vec<&Value> = items(role, "/rules").collect();
    for selector in items(role, "/aggregationRule/clusterRoleSelectors") {
        let Ok(Some(selector)) = tiphys_schema::LabelSelector::from_object(selector) else { continue };
        let parts = snapshot.list(&ResourceId::new(GROUP, "clusterroles"), None);
        let chosen =
            parts.filter(|r| selector.matches(r.at(&["metadata", "labels"]).unwrap_or(&Value::Null)));
        rules.extend(chosen.flat_map(|r| items(r, "/rules")));
    }
    rules
}

/// Whether a rule allows everything that a rule of one verb, group and resource (or path) allows.
pub(super) fn rule_covers(rule: &Value, part: &Value) -> bool {
    let first = |key: &str| part[key][0].as_str().unwrap_or_default().to_owned();
    let wish = Attributes {
        verb: first("verbs"),
        group: first("apiGroups"),
        resource: first("resources"),
        namespace: String::new(),
        name: first("resourceNames"),
        path: first("nonResourceURLs"),
    };
    rule_allows(rule, &wish)
}

fn rule_allows(rule: &Value, wish: &Attributes) -> bool {
    let has = |pointer: &str, wanted: &str| items(rule, pointer).any(|v| v == "*" || v == wanted);
    if !has("/verbs", &wish.verb) {
        return false;
    }
    if wish.resource.is_empty() {
        return items(rule, "/nonResourceURLs").filter_map(Value::as_str).any(|url| {
            url == wish.path || url.strip_suffix('*').is_some_and(|prefix| wish.path.starts_with(prefix))
        });
    }
    let any_of_subresource = wish.resource.split_once('/').map(|(_, sub)| format!("*/{sub}"));
    let names = items(rule, "/resourceNames").count();
    has("/apiGroups", &wish.group)
        && (has("/resources", &wish.resource)
            || any_of_subresource.is_some_and(|any| has("/resources", &any)))
        && (names == 0 || items(rule, "/resourceNames").any(|n| n == wish.name.as_str()))
}
