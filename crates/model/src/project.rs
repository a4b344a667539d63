//! AppProject: what its Applications may use (Argo CD docs, "Projects").

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tiphys_gocompat::glob::path_match;

use crate::{Destination, ModelError, ObjectMeta, glob, meta::read, repository, window::SyncWindow};

/// An AppProject.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AppProject {
    /// `metadata`.
    pub metadata: ObjectMeta,
    /// `spec`.
    pub spec: AppProjectSpec,
}

/// `spec` of an AppProject.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AppProjectSpec {
    /// Globs of repositories; a leading `!` denies.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub source_repos: Vec<String>,
    /// Clusters and namespaces; a leading `!` denies.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub destinations: Vec<Destination>,
    /// For people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Roles.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<Value>,
    /// Cluster-scoped kinds; empty means none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cluster_resource_whitelist: Vec<KindRule>,
    /// Namespaced kinds that are denied.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub namespace_resource_blacklist: Vec<KindRule>,
    /// Whether objects without an owner are reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub orphaned_resources: Option<OrphanedResources>,
    /// Sync windows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sync_windows: Vec<SyncWindow>,
    /// Namespaced kinds; absent means all, empty means none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace_resource_whitelist: Option<Vec<KindRule>>,
    /// Cluster-scoped kinds that are denied.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cluster_resource_blacklist: Vec<KindRule>,
    /// Namespaces in which Applications of the project may live.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub source_namespaces: Vec<String>,
    /// Only clusters of this project.
    #[serde(skip_serializing_if = "crate::source::is_false")]
    pub permit_only_project_scoped_clusters: bool,
    /// Identities for impersonation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub destination_service_accounts: Vec<DestinationServiceAccount>,
    /// Keys that commits must be signed with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub signature_keys: Vec<Value>,
    /// Which signatures are demanded of which repositories.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_integrity: Option<Value>,
    /// Whatever later versions add.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Group and kind globs, and a name glob for cluster-scoped objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KindRule {
    /// Group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Name; empty means any.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
}

/// `spec.orphanedResources`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OrphanedResources {
    /// They are shown as a warning; absent means yes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warn: Option<bool>,
    /// Those that do not count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<KindRule>,
}

/// One entry of `spec.destinationServiceAccounts`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DestinationServiceAccount {
    /// Glob of the cluster's address.
    pub server: String,
    /// Glob of the namespace.
    pub namespace: String,
    /// `name` or `namespace:name`.
    pub default_service_account: String,
}

impl AppProject {
    /// Reads an AppProject object.
    ///
    /// # Errors
    /// A field has the wrong type.
    pub fn from_value(value: &Value) -> Result<Self, ModelError> {
        read(value)
    }

    /// Adds the rules of a global project (Argo CD docs, "Configuring Global Projects").
    pub fn merge_global(&mut self, global: &Self) {
        let (own, other) = (&mut self.spec, &global.spec);
        own.cluster_resource_whitelist.extend(other.cluster_resource_whitelist.iter().cloned());
        own.cluster_resource_blacklist.extend(other.cluster_resource_blacklist.iter().cloned());
        own.namespace_resource_blacklist.extend(other.namespace_resource_blacklist.iter().cloned());
        // An empty list of the global project adds nothing; one of its own permits nothing.
        if let Some(list) = other.namespace_resource_whitelist.as_ref().filter(|list| !list.is_empty()) {
            own.namespace_resource_whitelist.get_or_insert_default().extend(list.iter().cloned());
        }
        own.sync_windows.extend(other.sync_windows.iter().cloned());
        own.source_repos.extend(other.source_repos.iter().cloned());
        own.destinations.extend(other.destinations.iter().cloned());
        own.destination_service_accounts.extend(other.destination_service_accounts.iter().cloned());
    }

    /// The project that exists without being declared: everything is permitted.
    pub fn permissive_default() -> Self {
        let any = KindRule { group: "*".into(), kind: "*".into(), name: String::new() };
        let everywhere = Destination { server: "*".into(), namespace: "*".into(), name: String::new() };
        Self {
            metadata: ObjectMeta { name: "default".into(), ..ObjectMeta::default() },
            spec: AppProjectSpec {
                source_repos: vec!["*".into()],
                destinations: vec![everywhere],
                cluster_resource_whitelist: vec![any],
                ..AppProjectSpec::default()
            },
        }
    }

    /// Whether a repository may be used. A pattern that denies something permits everything else. An address
    /// by which the same repository goes elsewhere (SSH, HTTPS) is another one here.
    pub fn permits_source(&self, repo_url: &str) -> bool {
        let wanted = repository::spelling(repo_url);
        let matches = |pattern: &str| {
            pattern == "*" || glob::matches_with(&repository::spelling(pattern), &wanted, Some('/'))
        };
        let mut permitted = false;
        for pattern in &self.spec.source_repos {
            match pattern.strip_prefix('!') {
                Some(denied) if matches(denied) => return false,
                Some(_) => permitted = true,
                None => permitted |= matches(pattern),
            }
        }
        permitted
    }

    /// The user that syncs to a destination are made as: the first service account that the project names for
    /// it, in the Application's destination namespace unless it says its own. `None` if it names none.
    ///
    /// # Errors
    /// The name of a service account is none, or a glob before it is malformed.
    pub fn service_account(
        &self,
        destination: &Destination,
        app_namespace: &str,
    ) -> Result<Option<String>, String> {
        let is_meant = |account: &&DestinationServiceAccount| {
            glob::matches(&account.server, &destination.server)
                && glob::matches(&account.namespace, &destination.namespace)
        };
        let Some(account) = self.spec.destination_service_accounts.iter().find(is_meant) else {
            return Ok(None);
        };
        let name = account.default_service_account.trim();
        if name.is_empty() || name.contains(['!', '*', '[', ']', '{', '}', '\\', '/']) {
            return Err(format!("default service account contains invalid chars '{name}'"));
        }
        let home = if destination.namespace.is_empty() { app_namespace } else { &destination.namespace };
        Ok(Some(match name.contains(':') {
            true => format!("system:serviceaccount:{name}"),
            false => format!("system:serviceaccount:{home}:{name}"),
        }))
    }

    /// Whether a namespace of a cluster may be used. `destination` has both address and name of the cluster
    /// where both are known.
    pub fn permits_destination(&self, destination: &Destination) -> bool {
        let mut permitted = false;
        for rule in &self.spec.destinations {
            let server = field_matches(&rule.server, &destination.server);
            let name = field_matches(&rule.name, &destination.name);
            let namespace = namespace_matches(&rule.namespace, &destination.namespace);
            let is_meant = server == Match::Yes || name == Match::Yes;
            // A name is denied in every namespace.
            if name == Match::Denied
                || (server == Match::Denied && namespace != Match::No)
                || (is_meant && namespace == Match::Denied)
            {
                return false;
            }
            permitted |= is_meant && namespace == Match::Yes;
        }
        permitted
    }

    /// Whether objects of a kind may be deployed; `name` counts for cluster-scoped ones.
    pub fn permits_kind(&self, group: &str, kind: &str, name: &str, namespaced: bool) -> bool {
        let matches = |pattern: &str, text: &str| path_match(pattern, text).unwrap_or(false);
        let hits = |rules: &[KindRule]| {
            rules.iter().any(|rule| {
                matches(&rule.group, group)
                    && matches(&rule.kind, kind)
                    && (namespaced || rule.name.is_empty() || matches(&rule.name, name))
            })
        };
        let spec = &self.spec;
        if namespaced {
            let listed = spec.namespace_resource_whitelist.as_ref().is_none_or(|rules| hits(rules));
            return listed && !hits(&spec.namespace_resource_blacklist);
        }
        hits(&spec.cluster_resource_whitelist) && !hits(&spec.cluster_resource_blacklist)
    }

    /// Whether an Application in a namespace may belong to the project.
    pub fn permits_app_namespace(&self, namespace: &str, engine_namespace: &str) -> bool {
        namespace == engine_namespace
            || self.spec.source_namespaces.iter().any(|pattern| glob::matches_or_regex(pattern, namespace))
    }
}

/// How a rule's field meets a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Match {
    Yes,
    No,
    Denied,
}

fn field_matches(pattern: &str, value: &str) -> Match {
    if pattern == "*" {
        return Match::Yes;
    }
    if value.is_empty() || pattern.is_empty() {
        return Match::No;
    }
    namespace_matches(pattern, value)
}

fn namespace_matches(pattern: &str, value: &str) -> Match {
    match pattern.strip_prefix('!') {
        Some(denied) if glob::matches(denied, value) => Match::Denied,
        Some(_) => Match::Yes,
        None if glob::matches(pattern, value) => Match::Yes,
        None => Match::No,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn project(spec: Value) -> AppProject {
        AppProject::from_value(&json!({"metadata": {"name": "p"}, "spec": spec})).expect("valid")
    }

    #[test]
    fn sources_match_by_their_addresses_and_denials_win() {
        let p =
            project(json!({"sourceRepos": ["https://github.com/acme/*", "!https://github.com/acme/secret"]}));
        assert!(p.permits_source("https://GitHub.com/Acme/shop.git"));
        assert!(
            !project(json!({"sourceRepos": ["https://github.com/acme/*"]}))
                .permits_source("git@github.com:acme/shop.git"),
            "HTTPS is not SSH"
        );
        let ssh = project(json!({"sourceRepos": ["git@github.com:acme/*"]}));
        assert!(ssh.permits_source("ssh://git@github.com/acme/shop.git"));
        assert!(!ssh.permits_source("https://github.com/acme/shop"));
        assert!(!p.permits_source("https://github.com/acme/secret.git"));
        let only = project(json!({"sourceRepos": ["https://github.com/acme/*"]}));
        assert!(!only.permits_source("https://github.com/other/shop"));
        assert!(!only.permits_source("https://github.com/acme/a/b"), "a star does not cross a slash");
        assert!(project(json!({"sourceRepos": ["*"]})).permits_source("oci://ghcr.io/x"));
    }

    #[test]
    fn destinations_by_address_or_name_with_denials() {
        let to = |server: &str, name: &str, namespace: &str| Destination {
            server: server.into(),
            name: name.into(),
            namespace: namespace.into(),
        };
        let p = project(json!({"destinations": [
            {"server": "*", "namespace": "team-*"}, {"server": "*", "namespace": "!team-secret"}, {"name": "prod", "namespace": "web"}]}));
        assert!(p.permits_destination(&to("https://a", "", "team-a")));
        assert!(!p.permits_destination(&to("https://a", "", "team-secret")));
        assert!(p.permits_destination(&to("", "prod", "web")));
        let named = project(json!({"destinations": [
            {"server": "*", "namespace": "*"}, {"name": "!prod", "namespace": "other"}]}));
        assert!(!named.permits_destination(&to("https://a", "prod", "web")), "a name is denied everywhere");
        assert!(named.permits_destination(&to("https://a", "dev", "web")));
        let all = project(json!({"destinations": [{"server": "*", "namespace": "*"}]}));
        assert!(all.permits_destination(&to("", "known-by-name-only", "web")));
    }

    #[test]
    fn kinds_match_as_file_names_do() {
        let listed = |group: &str, kind: &str| {
            let p = project(json!({"namespaceResourceWhitelist": [{"group": group, "kind": kind}]}));
            p.permits_kind("apps", "Deployment", "web", true)
        };
        assert!(listed("a*", "[CD]ep*") && listed("*", "*"));
        assert!(!listed("apps", "{Deployment,StatefulSet}"), "no alternatives");
        assert!(!listed("apps", "[Deployment"), "malformed");
    }

    #[test]
    fn a_global_project_hands_its_service_accounts_down_and_no_empty_list() {
        let account = |name: &str| json!([{"server": "*", "namespace": "*", "defaultServiceAccount": name}]);
        let global = project(
            json!({"destinationServiceAccounts": account("deployer"), "namespaceResourceWhitelist": []}),
        );
        let to = Destination { server: "https://a".into(), namespace: "web".into(), name: String::new() };
        let found = |own: Value| {
            let mut own = project(own);
            own.merge_global(&global);
            assert!(own.permits_kind("", "ConfigMap", "a", true));
            own.service_account(&to, "argocd").unwrap()
        };
        assert_eq!(found(json!({})).as_deref(), Some("system:serviceaccount:web:deployer"));
        let own = json!({"destinationServiceAccounts": account("own")});
        assert_eq!(found(own).as_deref(), Some("system:serviceaccount:web:own"), "its own come first");
    }

    #[test]
    fn the_first_service_account_that_is_meant_counts() {
        let p = project(json!({"destinationServiceAccounts": [
            {"server": "https://a", "namespace": "team-*", "defaultServiceAccount": "deployer"},
            {"server": "https://a", "namespace": "*", "defaultServiceAccount": "ops:other"},
            {"server": "https://b", "namespace": "*", "defaultServiceAccount": "*"},
            {"server": "https://d", "namespace": "*", "defaultServiceAccount": "a/b"}]}));
        let to = |server: &str, namespace: &str| {
            let destination =
                Destination { server: server.into(), namespace: namespace.into(), name: String::new() };
            p.service_account(&destination, "argocd")
        };
        assert_eq!(to("https://a", "team-x"), Ok(Some("system:serviceaccount:team-x:deployer".into())));
        assert_eq!(to("https://a", "web"), Ok(Some("system:serviceaccount:ops:other".into())));
        assert_eq!(to("https://c", "web"), Ok(None));
        assert!(to("https://b", "web").is_err() && to("https://d", "web").is_err());
    }

    #[test]
    fn applications_live_beside_the_engine_or_where_the_project_says() {
        let p = project(json!({"sourceNamespaces": ["team-*", "/^ops-[0-9]+$/", "/(/"]}));
        let permitted = |namespace: &str| p.permits_app_namespace(namespace, "argocd");
        assert!(permitted("argocd") && permitted("team-a") && permitted("ops-1"));
        assert!(!permitted("other") && !permitted("ops-1x") && !permitted("("));
        assert!(!project(json!({})).permits_app_namespace("team-a", "argocd"));
    }

    #[test]
    fn kinds_by_scope() {
        let p = project(
            json!({"clusterResourceWhitelist": [{"group": "", "kind": "Namespace", "name": "team-*"}],
            "namespaceResourceBlacklist": [{"group": "", "kind": "Secret"}]}),
        );
        assert!(p.permits_kind("", "Namespace", "team-a", false));
        assert!(!p.permits_kind("", "Namespace", "kube-system", false));
        assert!(!p.permits_kind("rbac.authorization.k8s.io", "ClusterRole", "x", false));
        assert!(p.permits_kind("apps", "Deployment", "", true));
        assert!(!p.permits_kind("", "Secret", "", true));
        let denied = project(json!({"clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
            "clusterResourceBlacklist": [{"group": "rbac.*", "kind": "ClusterRole*"}, {"group": "", "kind": "Namespace", "name": "kube-*"}]}));
        assert!(denied.permits_kind("", "Node", "n", false));
        assert!(!denied.permits_kind("rbac.authorization.k8s.io", "ClusterRoleBinding", "me", false));
        assert!(denied.permits_kind("rbac.authorization.k8s.io", "Role", "me", true));
        assert!(!denied.permits_kind("", "Namespace", "kube-system", false));
        assert!(denied.permits_kind("", "Namespace", "shop", false));
        let none = project(json!({"namespaceResourceWhitelist": []}));
        assert!(!none.permits_kind("apps", "Deployment", "", true));
        assert!(AppProject::permissive_default().permits_kind("x", "Y", "z", false));
    }
}
