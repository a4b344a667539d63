//! Annotation, label and finalizer names of Argo CD's API, and the few of our own.

/// Synchronisation wave of an object: a whole number.
pub const SYNC_WAVE: &str = "argocd.argoproj.io/sync-wave";
/// Sync options of one object: a comma list.
pub const SYNC_OPTIONS: &str = "argocd.argoproj.io/sync-options";
/// Hook types of an object: a comma list.
pub const HOOK: &str = "argocd.argoproj.io/hook";
/// When a hook object is deleted: a comma list.
pub const HOOK_DELETE_POLICY: &str = "argocd.argoproj.io/hook-delete-policy";
/// Compare options of an object or an Application: a comma list.
pub const COMPARE_OPTIONS: &str = "argocd.argoproj.io/compare-options";
/// Which Application an object belongs to, see [`crate::tracking`].
pub const TRACKING_ID: &str = "argocd.argoproj.io/tracking-id";
/// Which installation of the engine an object belongs to.
pub const INSTALLATION_ID: &str = "argocd.argoproj.io/installation-id";
/// Set to `true`, the object's health does not count for its Application.
pub const IGNORE_HEALTHCHECK: &str = "argocd.argoproj.io/ignore-healthcheck";
/// Set on a Pod, its restart policy does not count for its health.
pub const IGNORE_RESTART_POLICY: &str = "argocd.argoproj.io/ignore-restart-policy";
/// Request to an Application to look again: `normal` or `hard`.
pub const REFRESH: &str = "argocd.argoproj.io/refresh";
/// Tells two refresh requests apart: RFC 3339 with nanoseconds.
pub const REFRESH_TIMESTAMP: &str = "argocd.argoproj.io/refresh-timestamp";
/// Set to `true`, the Application (or cluster Secret) is left alone.
pub const SKIP_RECONCILE: &str = "argocd.argoproj.io/skip-reconcile";
/// Paths of the repository whose change concerns the Application: a `;` list.
pub const MANIFEST_GENERATE_PATHS: &str = "argocd.argoproj.io/manifest-generate-paths";
/// When deletions that ask for confirmation were confirmed: RFC 3339.
pub const DELETION_APPROVED: &str = "argocd.argoproj.io/deletion-approved";
/// What kubectl applied last on the client's side.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Field manager of client-side apply, from which server-side apply takes over.
pub const CLIENT_SIDE_APPLY_MANAGER: &str = "kubectl-client-side-apply";
/// Field manager whose fields are migrated to server-side apply, beside kubectl's.
pub const CLIENT_SIDE_APPLY_MIGRATION_MANAGER: &str =
    "argocd.argoproj.io/client-side-apply-migration-manager";
/// Kind of a declarative Secret: `cluster`, `repository`, `repo-creds`, `scm-creds`.
pub const SECRET_TYPE: &str = "argocd.argoproj.io/secret-type";
/// Asks for a refresh of an ApplicationSet.
pub const APPLICATION_SET_REFRESH: &str = "argocd.argoproj.io/application-set-refresh";
/// What of `status.tiphys` says why automated sync leaves an Application out of sync.
pub const LEFT_OUT_OF_SYNC: &str = "leftOutOfSync";
/// The field of what Tiphys adds to a status that says of which desired state a sync has made the objects
/// whose names are generated; ours.
pub const GENERATED_FOR: &str = "generatedFor";
/// Until when (RFC 3339) nothing is synced to the object or Application that bears it; ours.
pub const PAUSED_UNTIL: &str = "tiphys.dev/paused-until";
/// Objects of an Application to which nothing is synced for a time: a comma list of
/// `group/Kind/namespace/name=RFC 3339 time`, group and namespace empty where there are none; ours.
pub const PAUSED_RESOURCES: &str = "tiphys.dev/paused-resources";
/// What to do with an object that somebody else owns before its first apply: `adopt`, `refuse` or `share`;
/// on the object or on the Application; ours.
pub const OWNERSHIP: &str = "tiphys.dev/ownership";

/// Helm's hook annotation.
pub const HELM_HOOK: &str = "helm.sh/hook";
/// Helm's hook weight.
pub const HELM_HOOK_WEIGHT: &str = "helm.sh/hook-weight";
/// Helm's hook delete policy.
pub const HELM_HOOK_DELETE_POLICY: &str = "helm.sh/hook-delete-policy";
/// Helm's resource policy; `keep` protects from deletion.
pub const HELM_RESOURCE_POLICY: &str = "helm.sh/resource-policy";

/// Cascading deletion in the foreground.
pub const RESOURCES_FINALIZER: &str = "resources-finalizer.argocd.argoproj.io";
/// Cascading deletion in the foreground, in its explicit spelling.
pub const FOREGROUND_FINALIZER: &str = "resources-finalizer.argocd.argoproj.io/foreground";
/// Cascading deletion in the background.
pub const BACKGROUND_FINALIZER: &str = "resources-finalizer.argocd.argoproj.io/background";
/// PreDelete hooks have still to run.
pub const PRE_DELETE_FINALIZER: &str = "pre-delete-finalizer.argocd.argoproj.io";
/// PreDelete hooks have still to be removed.
pub const PRE_DELETE_CLEANUP_FINALIZER: &str = "pre-delete-finalizer.argocd.argoproj.io/cleanup";
/// PostDelete hooks have still to run.
pub const POST_DELETE_FINALIZER: &str = "post-delete-finalizer.argocd.argoproj.io";
/// PostDelete hooks have still to be removed.
pub const POST_DELETE_CLEANUP_FINALIZER: &str = "post-delete-finalizer.argocd.argoproj.io/cleanup";
/// Keeps a hook object until its result was seen.
pub const HOOK_FINALIZER: &str = "argocd.argoproj.io/hook-finalizer";

/// Default of `application.instanceLabelKey`.
pub const DEFAULT_INSTANCE_LABEL: &str = "app.kubernetes.io/instance";
/// API group of Application, ApplicationSet, AppProject.
pub const GROUP: &str = "argoproj.io";
/// API version of Application, ApplicationSet, AppProject.
pub const API_VERSION: &str = "argoproj.io/v1alpha1";
/// Address that means the cluster the engine runs in.
pub const IN_CLUSTER_SERVER: &str = "https://kubernetes.default.svc";
/// Name that means the cluster the engine runs in.
pub const IN_CLUSTER_NAME: &str = "in-cluster";
/// The field manager of Argo CD.
pub const ARGO_CD_MANAGER: &str = "argocd-controller";
/// Our field manager.
pub const FIELD_MANAGER: &str = "tiphys";

/// What Tiphys adds to a status, where Argo CD's own definition has no field for it; ours.
pub const KEPT: &str = "tiphys.dev/kept";
/// Label of Secrets that record what was pruned; ours.
pub const TOMBSTONE: &str = "tiphys.dev/tombstone";
/// Whose objects a record holds: `namespace/name`; ours.
pub const TOMBSTONE_APP: &str = "tiphys.dev/tombstone-app";
/// When they were pruned; ours.
pub const TOMBSTONE_TIME: &str = "tiphys.dev/tombstone-time";
/// The address of the cluster that they were in; ours.
pub const TOMBSTONE_SERVER: &str = "tiphys.dev/tombstone-server";
