//! What the project of an Application lets it do (Argo CD docs, "Projects" and "Sync Windows").

use std::sync::Arc;

use jiff::Timestamp;
use tiphys_cluster::{Cluster, LiveCache};
use tiphys_model::{
    AppProject, Application, ApplicationSource, Destination, Operation, SyncAttempt, glob,
    settings::{GlobalProject, Impersonation},
    window,
};
use tiphys_value::{ObjectExt, Value};

use crate::{
    destinations::{Clusters, ConnectedCluster},
    home::Home,
    project_objects::{DEFAULT_PROJECT, engine_namespace, or_default, project_object},
    settings::Settings,
    sources::Sources,
};

/// What an Application may do.
pub(crate) struct Policy {
    project: AppProject,
    /// The destination with both address and name of its cluster where they are known.
    destination: Destination,
    /// The project that the cluster is for; empty means any.
    cluster_project: String,
}

/// What Secrets declare for one project. It may use that without listing it (Argo CD docs, "Project scoped
/// Repositories and Clusters"); what it denies stays denied.
#[derive(Default)]
struct Scoped {
    /// Addresses of repositories.
    repositories: Vec<String>,
    /// Clusters, with each of the namespaces that are followed in them.
    destinations: Vec<Destination>,
}

/// The policy of an Application: by the projects of the engine's namespace, and where one cluster stands
/// for all, so perhaps for several installations, by those beside the Application too.
///
/// # Errors
/// With a text for an `InvalidSpecError`: there is no such project, or it cannot be read.
fn policy_of(
    cache: &LiveCache,
    settings: &Settings,
    global: &[GlobalProject],
    app: &Application,
    (destination, cluster_project): (Destination, String),
    scoped: Scoped,
) -> Result<Policy, String> {
    let namespaces = [settings.namespace.as_str(), engine_namespace(settings, app)];
    let find = |name: &str| project_object(cache, &namespaces, name);
    let found = find(or_default(&app.spec.project));
    let mut policy = Policy::new(app, found.as_deref(), destination, cluster_project)?;
    policy.project.spec.source_repos.extend(scoped.repositories);
    policy.project.spec.destinations.extend(scoped.destinations);
    for global in global {
        let applies = found.as_ref().is_some_and(|own| {
            own.name() != global.project_name && global.label_selector.matches(|key| own.label(key))
        });
        if let Some(object) = find(&global.project_name).filter(|_| applies) {
            let name = &global.project_name;
            let global = AppProject::from_value(&object)
                .map_err(|error| format!("global project {name} cannot be read: {error}"))?;
            policy.project.merge_global(&global);
        }
    }
    Ok(policy)
}

/// What projects let Applications do, by what the engine knows of its cluster now.
pub(crate) struct Policies {
    home: Arc<Home>,
    sources: Arc<Sources>,
    clusters: Arc<Clusters>,
}

impl Policies {
    pub(crate) fn new(home: Arc<Home>, sources: Arc<Sources>, clusters: Arc<Clusters>) -> Self {
        Self { home, sources, clusters }
    }

    /// The policy of an Application, see [`policy_of`].
    pub(crate) fn policy_of(&self, app: &Application) -> Result<Policy, String> {
        let destination = self.clusters.resolve(&app.spec.destination);
        let project = or_default(&app.spec.project);
        let scoped = Scoped {
            repositories: self.sources.repositories_of(project),
            destinations: self.clusters.of_project(project),
        };
        let global = &self.home.installation().argo.global_projects;
        policy_of(&self.home.cache, &self.home.settings, global, app, destination, scoped)
    }

    /// What is wrong with the spec of an Application, apart from its sources' content.
    pub(crate) fn spec_faults(&self, app: &Application) -> Vec<String> {
        if let Some(fault) = self.clusters.destination_fault(&app.spec.destination) {
            return vec![fault];
        }
        match self.policy_of(app) {
            Ok(policy) => policy.faults(app, engine_namespace(&self.home.settings, app)),
            Err(fault) => vec![fault],
        }
    }

    /// The cluster of an Application's objects, by requests of the one that its project wants syncs to be
    /// made as.
    ///
    /// # Errors
    /// The project has to name somebody and does not.
    pub(crate) fn acting(&self, app: &Application, cluster: &ConnectedCluster) -> Result<Cluster, String> {
        self.acting_by(app, cluster, self.home.installation().argo.impersonation)
    }

    /// The same for a deletion, which the engine makes itself where the project names nobody: else what
    /// cannot be synced could not be deleted either (Argo CD, controller `applyImpersonationConfig`).
    ///
    /// # Errors
    /// The project is not known.
    pub(crate) fn acting_to_delete(
        &self,
        app: &Application,
        cluster: &ConnectedCluster,
    ) -> Result<Cluster, String> {
        let impersonation = Impersonation { enforced: false, ..self.home.installation().argo.impersonation };
        self.acting_by(app, cluster, impersonation)
    }

    fn acting_by(
        &self,
        app: &Application,
        cluster: &ConnectedCluster,
        impersonation: Impersonation,
    ) -> Result<Cluster, String> {
        let user = self.policy_of(app)?.service_account(app, impersonation)?;
        let cluster = cluster.cache.cluster();
        Ok(user.map_or_else(|| cluster.clone(), |user| cluster.acting_as(&user)))
    }
}

impl Policy {
    fn new(
        app: &Application,
        project: Option<&Value>,
        destination: Destination,
        cluster_project: String,
    ) -> Result<Self, String> {
        let name = or_default(&app.spec.project);
        let project = match project {
            Some(object) => AppProject::from_value(object)
                .map_err(|error| format!("project {name} cannot be read: {error}"))?,
            None if name == DEFAULT_PROJECT => AppProject::permissive_default(),
            None => return Err(format!("Application referencing project {name} which does not exist")),
        };
        Ok(Self { project, destination, cluster_project })
    }

    /// The project.
    pub(crate) fn project(&self) -> &AppProject {
        &self.project
    }

    /// Everything of an Application's spec that the project does not permit, in Argo CD's words.
    pub(crate) fn faults(&self, app: &Application, engine_namespace: &str) -> Vec<String> {
        let name = &self.project.metadata.name;
        let mut faults = self.source_faults(&app.spec.effective_sources());
        let Destination { server, name: cluster, namespace } = &self.destination;
        if !self.project.permits_destination(&self.destination) {
            let server = if server.is_empty() { cluster } else { server };
            faults.push(format!(
                "application destination server '{server}' and namespace '{namespace}' do not match any of the allowed destinations in project '{name}'"
            ));
        }
        let is_scoped = self.project.spec.permit_only_project_scoped_clusters;
        if is_scoped && self.cluster_project != *name {
            faults.push(format!(
                "application destination server '{server}' is not a cluster of project '{name}', which permits only its own"
            ));
        }
        if !self.project.permits_app_namespace(&app.metadata.namespace, engine_namespace) {
            let mut fault = format!(
                "application '{}' in namespace '{}' is not permitted to use project '{name}'",
                app.metadata.name, app.metadata.namespace
            );
            for unread in self.project.spec.source_namespaces.iter().filter_map(|it| glob::regex_fault(it)) {
                fault.push_str(&format!("; of its sourceNamespaces, {unread}"));
            }
            faults.push(fault);
        }
        faults
    }

    /// The sources that the project does not permit, in Argo CD's words.
    pub(crate) fn source_faults(&self, sources: &[ApplicationSource]) -> Vec<String> {
        let refused = sources.iter().filter(|source| !self.project.permits_source(&source.repo_url));
        refused
            .map(|source| {
                let project = &self.project.metadata.name;
                format!("application repo {} is not permitted in project '{project}'", source.repo_url)
            })
            .collect()
    }

    /// Whether the project permits an object.
    ///
    /// # Errors
    /// With why not, in Argo CD's words.
    pub(crate) fn permit(&self, object: &Value, namespaced: bool) -> Result<(), String> {
        let (gvk, project) = (object.gvk(), &self.project.metadata.name);
        if !self.project.permits_kind(&gvk.group, &gvk.kind, object.name(), namespaced) {
            return Err(format!("resource {}:{} is not permitted in project {project}", gvk.group, gvk.kind));
        }
        if !namespaced {
            return Ok(());
        }
        let mut destination = self.destination.clone();
        if !object.namespace().is_empty() {
            object.namespace().clone_into(&mut destination.namespace);
        }
        if self.project.permits_destination(&destination) {
            return Ok(());
        }
        Err(format!("namespace {} is not permitted in project '{project}'", destination.namespace))
    }

    /// The user that a sync is made as; `None` is the engine itself.
    ///
    /// # Errors
    /// With a text for the operation: the project names none, and has to.
    pub(crate) fn service_account(
        &self,
        app: &Application,
        rules: Impersonation,
    ) -> Result<Option<String>, String> {
        if !rules.enabled {
            return Ok(None);
        }
        let Destination { server, namespace, .. } = &self.destination;
        let found = self.project.service_account(&self.destination, &app.metadata.namespace);
        match found.map_err(|why| format!("failed to derive service account to impersonate: {why}"))? {
            None if rules.enforced => Err(format!(
                "no matching service account found for destination server {server} and namespace {namespace}"
            )),
            found => Ok(found),
        }
    }

    /// Whether the sync windows let the engine begin a sync by itself.
    ///
    /// # Errors
    /// A window cannot be read; nothing may be synced then.
    pub(crate) fn may_begin(&self, app: &Application, now: Timestamp) -> Result<bool, String> {
        self.asks(app, SyncAttempt { manual: false, started_at: None }, now)
    }

    /// Whether the sync windows let an operation that began at an instant go on. A window that cannot be
    /// read forbids it.
    pub(crate) fn may_go_on(
        &self,
        app: &Application,
        operation: &Operation,
        began: Timestamp,
        now: Timestamp,
    ) -> bool {
        let attempt = SyncAttempt { manual: !operation.initiated_by.automated, started_at: Some(began) };
        self.asks(app, attempt, now).unwrap_or(false)
    }

    /// What is said of time zones of the sync windows of an Application that nobody knows: their schedules go
    /// by UTC.
    pub(crate) fn unknown_zones(&self, app: &Application) -> Vec<String> {
        let windows = self.project.spec.sync_windows.iter();
        let unknown = windows.filter(|window| window.has_unknown_zone() && window.concerns(app));
        let project = &self.project.metadata.name;
        let told = |window: &window::SyncWindow| {
            format!(
                "the sync window {} of project '{project}' has the time zone {}, which nobody knows: UTC is taken; \
                 zones are called as in Europe/Berlin",
                window.schedule, window.time_zone
            )
        };
        unknown.map(told).collect()
    }

    fn asks(&self, app: &Application, attempt: SyncAttempt, now: Timestamp) -> Result<bool, String> {
        window::permits(&self.project.spec.sync_windows, app, attempt, now).map_err(|error| {
            format!("invalid sync windows of project '{}': {error}", self.project.metadata.name)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_model::names;
    use tiphys_value::json;

    fn app(project: &str) -> Application {
        Application::from_value(&json!({"metadata": {"name": "shop", "namespace": "argocd"}, "spec": {
            "project": project, "source": {"repoURL": "https://git.example.com/shop.git", "path": "."},
            "destination": {"name": "in-cluster", "namespace": "shop"}}}))
        .expect("valid")
    }

    fn policy(spec: Value) -> Policy {
        let project = json!({"metadata": {"name": "team"}, "spec": spec});
        Policy::new(&app("team"), Some(&project), home(), String::new()).expect("valid")
    }

    fn home() -> Destination {
        Destination {
            server: names::IN_CLUSTER_SERVER.into(),
            name: names::IN_CLUSTER_NAME.into(),
            namespace: "shop".into(),
        }
    }

    #[test]
    fn only_the_default_project_needs_no_object() {
        for name in ["", "default"] {
            let policy = Policy::new(&app(name), None, home(), String::new()).expect("permissive");
            assert!(policy.faults(&app(name), "argocd").is_empty());
        }
        let missing = Policy::new(&app("team"), None, home(), String::new()).err();
        assert_eq!(missing.as_deref(), Some("Application referencing project team which does not exist"));
    }

    #[test]
    fn sources_and_destinations_are_refused_in_argo_words() {
        let faults = policy(json!({"sourceRepos": ["https://git.example.com/other.git"]}))
            .faults(&app("team"), "argocd");
        assert_eq!(
            faults,
            [
                "application repo https://git.example.com/shop.git is not permitted in project 'team'",
                "application destination server 'https://kubernetes.default.svc' and namespace 'shop' do not match any of the allowed destinations in project 'team'",
            ]
        );
    }

    #[test]
    fn a_cluster_given_by_name_is_found_by_address() {
        let policy = policy(json!({"sourceRepos": ["*"],
            "destinations": [{"server": "https://kubernetes.default.svc", "namespace": "shop"}]}));
        assert!(policy.faults(&app("team"), "argocd").is_empty());
        assert_eq!(policy.faults(&app("team"), "engine").len(), 1, "the namespace of the Application counts");
    }

    #[test]
    fn a_project_may_permit_its_own_clusters_only() {
        let spec = json!({"sourceRepos": ["*"], "permitOnlyProjectScopedClusters": true,
            "destinations": [{"server": "*", "namespace": "*"}]});
        let mut policy = policy(spec);
        let faults = policy.faults(&app("team"), "argocd");
        assert!(faults.len() == 1 && faults[0].contains("is not a cluster of project 'team'"), "{faults:?}");
        policy.cluster_project = "team".into();
        assert!(policy.faults(&app("team"), "argocd").is_empty());
    }

    #[test]
    fn a_pattern_of_namespaces_that_cannot_be_read_is_told() {
        let open = json!({"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}],
            "sourceNamespaces": ["/^(?!kube-)/", "other"]});
        let mut app = app("team");
        app.metadata.namespace = "shop".into();
        assert_eq!(
            policy(open).faults(&app, "argocd"),
            [
                "application 'shop' in namespace 'shop' is not permitted to use project 'team'; of its sourceNamespaces, /^(?!kube-)/ matches nothing: Tiphys knows no look-around"
            ]
        );
    }

    #[test]
    fn syncs_are_made_as_service_accounts_if_that_is_wanted() {
        let account = json!([{"server": "*", "namespace": "shop", "defaultServiceAccount": "deployer"}]);
        let named = policy(json!({"destinationServiceAccounts": account}));
        let rules = |enabled, enforced| Impersonation { enabled, enforced };
        assert_eq!(named.service_account(&app("team"), rules(false, true)), Ok(None));
        let user = Some("system:serviceaccount:shop:deployer".to_owned());
        assert_eq!(named.service_account(&app("team"), rules(true, true)), Ok(user));
        let unnamed = policy(json!({}));
        assert!(unnamed.service_account(&app("team"), rules(true, true)).is_err());
        assert_eq!(unnamed.service_account(&app("team"), rules(true, false)), Ok(None));
    }

    #[test]
    fn objects_by_kind_and_namespace() {
        let policy = policy(json!({"destinations": [{"server": "*", "namespace": "shop"}]}));
        let object = |kind: &str, namespace: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "x", "namespace": namespace}});
        assert_eq!(policy.permit(&object("Secret", ""), true), Ok(()));
        assert_eq!(
            policy.permit(&object("Secret", "kube-system"), true),
            Err("namespace kube-system is not permitted in project 'team'".into())
        );
        assert_eq!(
            policy.permit(&object("Node", ""), false),
            Err("resource :Node is not permitted in project team".into())
        );
    }

    #[test]
    fn windows_tell_people_from_the_engine() {
        let policy = policy(json!({"syncWindows": [{"kind": "deny", "schedule": "0 12 * * *",
            "duration": "1h", "clusters": ["in-cluster"], "manualSync": true}]}));
        let noon: Timestamp = "2026-01-01T12:30:00Z".parse().expect("valid");
        let later: Timestamp = "2026-01-01T14:00:00Z".parse().expect("valid");
        assert_eq!(policy.may_begin(&app("team"), noon), Ok(false));
        assert_eq!(policy.may_begin(&app("team"), later), Ok(true));
        let mut operation = Operation::default();
        assert!(policy.may_go_on(&app("team"), &operation, noon, noon));
        operation.initiated_by.automated = true;
        assert!(!policy.may_go_on(&app("team"), &operation, noon, noon));
    }

    #[test]
    fn a_time_zone_that_nobody_knows_is_told() {
        let window = |zone: &str| {
            json!({"syncWindows": [{"kind": "deny", "schedule": "0 12 * * *", "duration": "1h",
                "timeZone": zone, "applications": ["*"]}]})
        };
        assert_eq!(policy(window("Europe/Berlin")).unknown_zones(&app("team")), Vec::<String>::new());
        let told = policy(window("Berlin")).unknown_zones(&app("team"));
        assert!(matches!(told.as_slice(), [only] if only.contains("time zone Berlin")), "{told:?}");
    }

    #[test]
    fn a_window_that_cannot_be_read_forbids() {
        let policy = policy(json!({"syncWindows": [{"kind": "allow", "schedule": "often",
            "duration": "1h", "applications": ["*"]}]}));
        let now: Timestamp = "2026-01-01T12:30:00Z".parse().expect("valid");
        assert!(policy.may_begin(&app("team"), now).is_err());
        assert!(!policy.may_go_on(&app("team"), &Operation::default(), now, now));
    }
}
