//! Refusals of rights by the API server.

use crate::pattern::{has_any, pattern};

/// A request that the API server forbade.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Forbidden {
    /// The user, as `system:serviceaccount:ops:janitor`.
    pub user: String,
    /// `list`, `watch`, …
    pub verb: String,
    /// The resource in the plural, with its subresource.
    pub resource: String,
    /// The resource's API group; empty for the core group.
    pub group: String,
    /// The namespace; `None` at the scope of the cluster.
    pub namespace: Option<String>,
    /// The line.
    pub line: String,
}

impl Forbidden {
    /// Namespace and name of the service account, if the user is one.
    #[must_use]
    pub fn service_account(&self) -> Option<(&str, &str)> {
        self.user.strip_prefix("system:serviceaccount:")?.split_once(':')
    }
}

pattern!(
    FORBIDDEN,
    r#"User \\*"([^"\\]+)\\*" cannot (\w+) (?:resource|path) \\*"([^"\\]+)\\*"(?: in API group \\*"([^"\\]*)\\*")?(?: in the namespace \\*"([^"\\]+)\\*")?"#
);

/// Whether an operator may not own what it makes: it lacks the right to set finalizers on its own resource.
#[must_use]
pub fn cannot_own(text: &str) -> bool {
    text.contains("cannot set blockOwnerDeletion")
}

/// The forbidden requests that a text tells of, each once.
#[must_use]
pub fn forbidden(text: &str) -> Vec<Forbidden> {
    let mut found: Vec<Forbidden> = Vec::new();
    for line in text.lines() {
        for it in FORBIDDEN.captures_iter(line) {
            let group = |at: usize| it.get(at).map(|group| group.as_str().to_owned());
            let forbidden = Forbidden {
                user: group(1).unwrap_or_default(),
                verb: group(2).unwrap_or_default(),
                resource: group(3).unwrap_or_default(),
                group: group(4).unwrap_or_default(),
                namespace: group(5),
                line: line.to_owned(),
            };
            let is_known = found.iter().any(|known| {
                Forbidden { line: String::new(), ..known.clone() }
                    == Forbidden { line: String::new(), ..forbidden.clone() }
            });
            if !is_known {
                found.push(forbidden);
            }
        }
    }
    found
}

/// Whether a controller says that what it watches never arrives: it may not list or watch it, most often.
#[must_use]
pub fn caches_unsynced(line: &str) -> bool {
    let low = line.to_ascii_lowercase();
    let is_of_cache =
        ["sync cache", "caches to sync", "cache to sync", "cache did not sync", "caches did not sync"];
    let is_failure = ["timed out", "failed", "timeout", "did not", "deadline"];
    has_any(&low, &is_of_cache) && has_any(&low, &is_failure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_subresources_and_quotes_in_quotes() {
        let found = forbidden(
            "pods is forbidden: User \"system:serviceaccount:ops:janitor\" cannot list resource \"pods\" in API group \"\" at the cluster scope\n{\"error\":\"deployments.apps is forbidden: User \\\"jo\\\" cannot patch resource \\\"deployments/scale\\\" in API group \\\"apps\\\" in the namespace \\\"shop\\\"\"}",
        );
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].service_account(), Some(("ops", "janitor")));
        assert_eq!((found[1].verb.as_str(), found[1].resource.as_str()), ("patch", "deployments/scale"));
        assert_eq!(found[1].namespace.as_deref(), Some("shop"));
        let nested = r#"err="{\"message\":\"tokenreviews.authentication.k8s.io is forbidden: User \\\"system:serviceaccount:safe:safe\\\" cannot create resource \\\"tokenreviews\\\" in API group \\\"authentication.k8s.io\\\" at the cluster scope\"}"#;
        assert_eq!(forbidden(nested)[0].service_account(), Some(("safe", "safe")));
    }
}
