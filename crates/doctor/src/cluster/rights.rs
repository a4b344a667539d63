//! Rights: what a user may do, by the roles that are bound to it.

use tiphys_value::{ObjectExt as _, Value};

use super::{Cluster, items};
use crate::Object;

/// What is asked for.
pub(crate) struct Request<'a> {
    pub(crate) user: &'a str,
    pub(crate) verb: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) group: &'a str,
    /// `None` at the scope of the cluster.
    pub(crate) namespace: Option<&'a str>,
}

/// What the roles say to a request.
#[derive(Debug)]
pub(crate) enum Answer {
    /// A role allows it.
    Allowed,
    /// A role that is bound lacks it: the role that is nearest to it.
    Lacking { role: Object, binding: Object },
    /// A binding names a role that is absent.
    RoleAbsent { role: Object, binding: Object },
    /// A role would allow it in other namespaces only.
    OtherScope { role: Object, binding: Object },
    /// Nothing is bound to the user.
    Unbound,
    /// The roles were not saved.
    Unknown,
}

impl Cluster<'_> {
    /// What the roles that are bound to a user say to a request.
    pub(crate) fn rights(&self, request: &Request<'_>) -> Answer {
        if !self.has_kind("ClusterRoleBinding") && !self.has_kind("RoleBinding") {
            return self.namesake(request).unwrap_or(Answer::Unknown);
        }
        let mut best: Option<(u8, Answer)> = None;
        let bindings = self.all("ClusterRoleBinding").iter().chain(self.all("RoleBinding"));
        for binding in bindings.filter(|binding| names_user(binding, request.user)) {
            let reference = Object::new(
                binding.str_at(&["roleRef", "kind"]).unwrap_or_default(),
                if binding.str_at(&["roleRef", "kind"]) == Some("Role") { binding.namespace() } else { "" },
                binding.str_at(&["roleRef", "name"]).unwrap_or_default(),
            );
            let reaches =
                binding.kind() == "ClusterRoleBinding" || request.namespace == Some(binding.namespace());
            let binding = Object::from_live(binding);
            let (rank, answer) = match self.live(&reference) {
                // The API server has refused, so the role lacks it, whether it was saved or not.
                None if !self.has_kind(&reference.kind) => (3, Answer::Lacking { role: reference, binding }),
                None => (4, Answer::RoleAbsent { role: reference, binding }),
                Some(role) => match (allows(role, request), reaches) {
                    (Match::All, true) => return Answer::Allowed,
                    (Match::All, false) => (6, Answer::OtherScope { role: reference, binding }),
                    (Match::Resource, reaches) => {
                        (4 + u8::from(reaches), Answer::Lacking { role: reference, binding })
                    }
                    (Match::None, _) if is_common(&reference.name) => {
                        (1, Answer::Lacking { role: reference, binding })
                    }
                    (Match::None, reaches) => {
                        (2 + u8::from(reaches), Answer::Lacking { role: reference, binding })
                    }
                },
            };
            if best.as_ref().is_none_or(|(known, _)| rank > *known) {
                best = Some((rank, answer));
            }
        }
        best.map_or(Answer::Unbound, |(_, answer)| answer)
    }
}

/// Why an account cannot watch what it lists, as far as its roles tell.
pub(crate) enum WatchGap {
    /// A role lets it list, and not watch.
    NoWatch { role: Object, resources: String },
    /// Its roles are for one namespace.
    OneNamespace { role: Object, binding: Object },
    /// Nothing is bound to it.
    Unbound,
}

impl Cluster<'_> {
    /// What keeps a user from watching, and whether all bindings were seen.
    pub(crate) fn watch_gap(&self, user: &str) -> Option<(WatchGap, bool)> {
        let bindings = self.all("ClusterRoleBinding").iter().chain(self.all("RoleBinding"));
        let bound: Vec<(Object, Object)> = bindings
            .filter(|binding| names_user(binding, user))
            .map(|binding| {
                let kind = binding.str_at(&["roleRef", "kind"]).unwrap_or_default();
                let namespace = if kind == "Role" { binding.namespace() } else { "" };
                let name = binding.str_at(&["roleRef", "name"]).unwrap_or_default();
                (Object::from_live(binding), Object::new(kind, namespace, name))
            })
            .filter(|(_, role)| !is_common(&role.name))
            .collect();
        let lists_only = |rule: &&Value| {
            let has = |verb: &str| {
                items(rule, &["verbs"]).filter_map(Value::as_str).any(|it| it == verb || it == "*")
            };
            has("list") && !has("watch")
        };
        for (_, role) in &bound {
            let Some(live) = self.live(role) else { continue };
            if let Some(rule) = items(live, &["rules"]).find(lists_only) {
                let resources: Vec<&str> = items(rule, &["resources"]).filter_map(Value::as_str).collect();
                return Some((
                    WatchGap::NoWatch { role: role.clone(), resources: resources.join(", ") },
                    true,
                ));
            }
        }
        let is_complete = self.has_kind("ClusterRoleBinding");
        if bound.is_empty() {
            return Some((WatchGap::Unbound, is_complete));
        }
        let (binding, role) = bound.iter().find(|_| bound.iter().all(|(it, _)| it.kind == "RoleBinding"))?;
        Some((WatchGap::OneNamespace { role: role.clone(), binding: binding.clone() }, is_complete))
    }

    /// The role that bears the name of the account, where bindings were not saved.
    fn namesake(&self, request: &Request<'_>) -> Option<Answer> {
        let (_, account) = request.user.strip_prefix("system:serviceaccount:")?.split_once(':')?;
        let roles = self.all("Role").iter().chain(self.all("ClusterRole"));
        let mut named =
            roles.filter(|role| role.name() == account || role.name().starts_with(&format!("{account}-")));
        let role = named.find(|role| allows(role, request) == Match::Resource)?;
        let role = Object::from_live(role);
        Some(Answer::Lacking { binding: role.clone(), role })
    }
}

/// Roles that everybody has.
fn is_common(role: &str) -> bool {
    matches!(
        role,
        "system:discovery"
            | "system:basic-user"
            | "system:public-info-viewer"
            | "system:service-account-issuer-discovery"
    )
}

/// Whether a binding's subjects name a user, or a group of service accounts that it is in.
fn names_user(binding: &Value, user: &str) -> bool {
    let account = user.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'));
    items(binding, &["subjects"]).any(|subject| {
        let name = subject.str_at(&["name"]).unwrap_or_default();
        match (subject.str_at(&["kind"]), account) {
            (Some("ServiceAccount"), Some((namespace, account))) => {
                name == account && subject.str_at(&["namespace"]).unwrap_or(binding.namespace()) == namespace
            }
            (Some("Group"), Some((namespace, _))) => {
                name == "system:serviceaccounts"
                    || name == "system:authenticated"
                    || name.strip_prefix("system:serviceaccounts:") == Some(namespace)
            }
            (Some("User"), _) => name == user,
            _ => false,
        }
    })
}

/// How far a role's rules go.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Match {
    None,
    Resource,
    All,
}

fn allows(role: &Value, request: &Request<'_>) -> Match {
    let lists = |rule: &Value, key: &str, wanted: &str| {
        items(rule, &[key]).filter_map(Value::as_str).any(|word| word == "*" || word == wanted)
    };
    let judged = items(role, &["rules"]).map(|rule| {
        let is_path = request.resource.starts_with('/');
        let (base, sub) = request.resource.split_once('/').unwrap_or((request.resource, ""));
        let of_resource = if is_path {
            lists(rule, "nonResourceURLs", request.resource)
        } else {
            lists(rule, "apiGroups", request.group)
                && (lists(rule, "resources", request.resource)
                    || !sub.is_empty()
                        && (lists(rule, "resources", &format!("{base}/*"))
                            || lists(rule, "resources", &format!("*/{sub}"))))
        };
        let is_limited = items(rule, &["resourceNames"]).next().is_some();
        match (of_resource, lists(rule, "verbs", request.verb)) {
            (true, true) if !is_limited => Match::All,
            (true, _) => Match::Resource,
            _ => Match::None,
        }
    });
    judged.max().unwrap_or(Match::None)
}
