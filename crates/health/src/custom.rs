//! Health of custom resources, by one small table per API group. Each row follows the status conventions
//! that the project publishes for its kinds: which condition says that the object does its work, which
//! that it has failed, and whether `False` is a fault or only "not yet".

use serde_json::Value;
use tiphys_model::{HealthCode, HealthStatus};
use tiphys_value::{GroupVersionKind, ObjectExt};

use crate::conditions::{self, Condition};

/// How a kind reports.
enum Rule {
    /// A condition that is True when the object does its work. `False` is a fault unless its reason is one
    /// of those listed, which mean "not yet".
    Condition { kind: &'static str, pending: &'static [&'static str] },
    /// Conditions as above, the first one present counts, whose `False` always means "not yet".
    Eventually(&'static [&'static str]),
    /// The kind reports nothing: it has no health.
    Silent,
    /// A text field of the status.
    Phase {
        field: &'static [&'static str],
        healthy: &'static [&'static str],
        degraded: &'static [&'static str],
        suspended: &'static [&'static str],
    },
}

use Rule::{Condition as Cond, Eventually, Phase, Silent};

/// Kinds of Crossplane providers that hold settings and report nothing.
const CROSSPLANE_SETTINGS: &[&str] =
    &["ProviderConfig", "ClusterProviderConfig", "ProviderConfigUsage", "StoreConfig", "EnvironmentConfig"];

/// A row: group, kinds (`*` is any), rule. The first row that matches counts.
type Row = (&'static str, &'static [&'static str], Rule);

/// A group that starts with a dot matches all groups that end with it.
const TABLE: &[Row] = &[
    // cert-manager: https://cert-manager.io/docs/reference/api-docs
    (
        "cert-manager.io",
        &["Certificate"],
        Cond { kind: "Ready", pending: &["DoesNotExist", "Issuing", "Pending", "InProgress", "MissingData"] },
    ),
    (
        "cert-manager.io",
        &["Issuer", "ClusterIssuer"],
        Cond { kind: "Ready", pending: &["ErrInitIssuer", "Initializing"] },
    ),
    ("cert-manager.io", &["CertificateRequest"], Cond { kind: "Ready", pending: &["Pending"] }),
    (
        "acme.cert-manager.io",
        &["Order", "Challenge"],
        Phase {
            field: &["status", "state"],
            healthy: &["valid"],
            degraded: &["invalid", "errored", "expired"],
            suspended: &[],
        },
    ),
    // external-secrets
    ("external-secrets.io", &["*"], Cond { kind: "Ready", pending: &[] }),
    ("bitnami.com", &["SealedSecret"], Cond { kind: "Synced", pending: &[] }),
    // Argo
    (
        "argoproj.io",
        &["Rollout"],
        Phase {
            field: &["status", "phase"],
            healthy: &["Healthy"],
            degraded: &["Degraded"],
            suspended: &["Paused"],
        },
    ),
    (
        "argoproj.io",
        &["AnalysisRun", "Experiment"],
        Phase {
            field: &["status", "phase"],
            healthy: &["Successful"],
            degraded: &["Failed", "Error", "Inconclusive"],
            suspended: &[],
        },
    ),
    // databases and brokers
    ("postgresql.cnpg.io", &["Cluster"], Cond { kind: "Ready", pending: &["ClusterIsNotReady"] }),
    (
        "postgresql.cnpg.io",
        &["Backup"],
        Phase {
            field: &["status", "phase"],
            healthy: &["completed"],
            degraded: &["failed", "walArchivingFailing"],
            suspended: &[],
        },
    ),
    (
        "acid.zalan.do",
        &["postgresql"],
        Phase {
            field: &["status", "PostgresClusterStatus"],
            healthy: &["Running"],
            degraded: &["CreateFailed", "UpdateFailed", "SyncFailed", "Invalid"],
            suspended: &[],
        },
    ),
    (
        "kafka.strimzi.io",
        &[
            "Kafka",
            "KafkaTopic",
            "KafkaUser",
            "KafkaConnect",
            "KafkaConnector",
            "KafkaMirrorMaker2",
            "KafkaBridge",
        ],
        Cond { kind: "Ready", pending: &["Creating"] },
    ),
    ("rabbitmq.com", &["RabbitmqCluster"], Cond { kind: "AllReplicasReady", pending: &["NotAllPodsReady"] }),
    ("rabbitmq.com", &["*"], Cond { kind: "Ready", pending: &[] }),
    (
        "elasticsearch.k8s.elastic.co",
        &["Elasticsearch"],
        Phase {
            field: &["status", "health"],
            healthy: &["green", "yellow"],
            degraded: &["red"],
            suspended: &[],
        },
    ),
    (
        "kibana.k8s.elastic.co",
        &["Kibana"],
        Phase { field: &["status", "health"], healthy: &["green"], degraded: &["red"], suspended: &[] },
    ),
    (
        "k8s.mariadb.com",
        &["MariaDB", "Database", "User", "Grant", "Connection", "MaxScale"],
        Eventually(&["Ready"]),
    ),
    (
        "mongodbcommunity.mongodb.com",
        &["*"],
        Phase { field: &["status", "phase"], healthy: &["Running"], degraded: &["Failed"], suspended: &[] },
    ),
    (
        "pxc.percona.com",
        &["PerconaXtraDBCluster"],
        Phase {
            field: &["status", "state"],
            healthy: &["ready"],
            degraded: &["error"],
            suspended: &["paused"],
        },
    ),
    (
        "psmdb.percona.com",
        &["PerconaServerMongoDB"],
        Phase {
            field: &["status", "state"],
            healthy: &["ready"],
            degraded: &["error"],
            suspended: &["paused"],
        },
    ),
    (
        "redis.redis.opstreelabs.in",
        &["RedisCluster"],
        Phase { field: &["status", "state"], healthy: &["Ready"], degraded: &["Failed"], suspended: &[] },
    ),
    // infrastructure
    (
        "pkg.crossplane.io",
        &["Provider", "Configuration", "Function"],
        Cond { kind: "Healthy", pending: &["UnknownPackageRevisionHealth"] },
    ),
    ("apiextensions.crossplane.io", &["CompositeResourceDefinition"], Eventually(&["Established"])),
    ("apiextensions.crossplane.io", &["*"], Silent),
    ("pkg.crossplane.io", &["*"], Silent),
    (".crossplane.io", CROSSPLANE_SETTINGS, Silent),
    (".upbound.io", CROSSPLANE_SETTINGS, Silent),
    (".crossplane.io", &["*"], Eventually(&["Ready"])),
    (".upbound.io", &["*"], Eventually(&["Ready"])),
    (
        "cluster.x-k8s.io",
        &["Cluster", "Machine", "MachineDeployment", "MachineSet", "MachinePool"],
        Eventually(&["Available", "Ready"]),
    ),
    ("controlplane.cluster.x-k8s.io", &["KubeadmControlPlane"], Eventually(&["Available", "Ready"])),
    ("operator.tigera.io", &["TigeraStatus"], Eventually(&["Available"])),
    (
        "ceph.rook.io",
        &["CephCluster", "CephBlockPool", "CephFilesystem", "CephObjectStore"],
        Phase {
            field: &["status", "phase"],
            healthy: &["Ready", "Connected"],
            degraded: &["Failure", "Failed", "Error"],
            suspended: &[],
        },
    ),
    (
        "longhorn.io",
        &["Volume"],
        Phase {
            field: &["status", "robustness"],
            healthy: &["healthy"],
            degraded: &["faulted", "degraded"],
            suspended: &[],
        },
    ),
    // delivery
    (
        "kustomize.toolkit.fluxcd.io",
        &["*"],
        Cond { kind: "Ready", pending: &["Progressing", "DependencyNotReady"] },
    ),
    (
        "helm.toolkit.fluxcd.io",
        &["*"],
        Cond { kind: "Ready", pending: &["Progressing", "DependencyNotReady"] },
    ),
    (
        "source.toolkit.fluxcd.io",
        &["GitRepository", "OCIRepository", "Bucket", "HelmChart"],
        Cond { kind: "Ready", pending: &["Progressing"] },
    ),
    ("image.toolkit.fluxcd.io", &["*"], Cond { kind: "Ready", pending: &["Progressing"] }),
    ("notification.toolkit.fluxcd.io", &["Receiver"], Cond { kind: "Ready", pending: &["Progressing"] }),
    (
        "flagger.app",
        &["Canary"],
        Phase {
            field: &["status", "phase"],
            healthy: &["Initialized", "Succeeded"],
            degraded: &["Failed"],
            suspended: &["Waiting"],
        },
    ),
    (
        "tekton.dev",
        &["PipelineRun", "TaskRun"],
        Cond { kind: "Succeeded", pending: &["Started", "Running", "Pending"] },
    ),
    // serving and meshes
    (
        "serving.knative.dev",
        &["Service", "Configuration", "Revision", "Route", "DomainMapping"],
        Eventually(&["Ready"]),
    ),
    ("eventing.knative.dev", &["Broker", "Trigger"], Eventually(&["Ready"])),
    (
        "sources.knative.dev",
        &["ApiServerSource", "ContainerSource", "PingSource", "SinkBinding", "KafkaSource"],
        Eventually(&["Ready"]),
    ),
    ("messaging.knative.dev", &["Channel", "InMemoryChannel", "Subscription"], Eventually(&["Ready"])),
    ("operator.knative.dev", &["*"], Eventually(&["Ready"])),
    (
        "gateway.networking.k8s.io",
        &["Gateway"],
        Cond { kind: "Programmed", pending: &["Pending", "AddressNotAssigned", "NoResources"] },
    ),
    (
        "gateway.networking.k8s.io",
        &["GatewayClass"],
        Cond { kind: "Accepted", pending: &["Pending", "Waiting"] },
    ),
    (
        "projectcontour.io",
        &["HTTPProxy"],
        Phase {
            field: &["status", "currentStatus"],
            healthy: &["valid"],
            degraded: &["invalid", "orphaned"],
            suspended: &[],
        },
    ),
    ("serving.kserve.io", &["InferenceService"], Eventually(&["Ready"])),
    // operations
    (
        "monitoring.coreos.com",
        &["Prometheus", "Alertmanager", "ThanosRuler", "PrometheusAgent"],
        Cond { kind: "Available", pending: &["SomePodsNotReady", "NoPodReady"] },
    ),
    ("keda.sh", &["ScaledObject", "ScaledJob"], Cond { kind: "Ready", pending: &[] }),
    ("kyverno.io", &["ClusterPolicy", "Policy"], Eventually(&["Ready"])),
    (
        "velero.io",
        &["Backup", "Restore"],
        Phase {
            field: &["status", "phase"],
            healthy: &["Completed"],
            degraded: &["Failed", "PartiallyFailed", "FailedValidation"],
            suspended: &[],
        },
    ),
    (
        "velero.io",
        &["BackupStorageLocation"],
        Phase {
            field: &["status", "phase"],
            healthy: &["Available"],
            degraded: &["Unavailable"],
            suspended: &[],
        },
    ),
    (
        "velero.io",
        &["Schedule"],
        Phase {
            field: &["status", "phase"],
            healthy: &["Enabled"],
            degraded: &["FailedValidation"],
            suspended: &[],
        },
    ),
    (
        "operators.coreos.com",
        &["ClusterServiceVersion"],
        Phase { field: &["status", "phase"], healthy: &["Succeeded"], degraded: &["Failed"], suspended: &[] },
    ),
    ("karpenter.sh", &["NodePool", "NodeClaim"], Eventually(&["Ready"])),
    ("karpenter.k8s.aws", &["EC2NodeClass"], Eventually(&["Ready"])),
    ("k8s.keycloak.org", &["Keycloak"], Eventually(&["Ready"])),
    (
        "grafana.integreatly.org",
        &["Grafana"],
        Phase {
            field: &["status", "stageStatus"],
            healthy: &["success"],
            degraded: &["failed"],
            suspended: &[],
        },
    ),
    ("kueue.x-k8s.io", &["ClusterQueue", "LocalQueue"], Eventually(&["Active"])),
    (
        "ray.io",
        &["RayCluster"],
        Phase {
            field: &["status", "state"],
            healthy: &["ready"],
            degraded: &["failed"],
            suspended: &["suspended"],
        },
    ),
];

/// Health of a custom resource by the table; `None` if no row matches.
pub(crate) fn assess(gvk: &GroupVersionKind, object: &Value) -> Option<HealthStatus> {
    let (_, _, rule) = TABLE.iter().find(|(group, kinds, _)| {
        let group_matches = gvk.group == *group || (group.starts_with('.') && gvk.group.ends_with(group));
        group_matches && kinds.iter().any(|kind| *kind == "*" || *kind == gvk.kind)
    })?;
    judge(rule, object)
}

fn judge(rule: &Rule, object: &Value) -> Option<HealthStatus> {
    let observed = object.int_at(&["status", "observedGeneration"]);
    if observed.is_some_and(|seen| seen < object.generation()) {
        return Some(HealthStatus::new(
            HealthCode::Progressing,
            "the present spec has not been observed yet",
        ));
    }
    Some(match rule {
        Silent => return None,
        Cond { kind, pending } => by_condition(object, &[kind], Some(pending)),
        Eventually(kinds) => by_condition(object, kinds, None),
        Phase { field, healthy, degraded, suspended } => {
            let phase = object.str_at(field).unwrap_or_default();
            let message = object.str_at(&["status", "message"]).unwrap_or(phase);
            let code = [
                (healthy, HealthCode::Healthy),
                (degraded, HealthCode::Degraded),
                (suspended, HealthCode::Suspended),
            ]
            .into_iter()
            .find_map(|(list, code)| list.contains(&phase).then_some(code));
            HealthStatus::new(code.unwrap_or(HealthCode::Progressing), message)
        }
    })
}

/// `pending` are the reasons that make a False only a "not yet"; `None` means all of them.
fn by_condition(object: &Value, kinds: &[&str], pending: Option<&[&str]>) -> HealthStatus {
    let conditions = conditions::of(object);
    if let Some(c) = conditions.iter().find(|c| c.kind == "Stalled" && c.status == "True") {
        return HealthStatus::new(HealthCode::Degraded, describe(c));
    }
    let Some(condition) = kinds.iter().find_map(|kind| conditions.iter().find(|c| c.kind == *kind)) else {
        return HealthStatus::new(
            HealthCode::Progressing,
            format!("no condition {} yet", kinds.join(" or ")),
        );
    };
    if condition.observed_generation.is_some_and(|seen| seen < object.generation()) {
        return HealthStatus::new(HealthCode::Progressing, "the present spec has not been observed yet");
    }
    let code = match condition.status.as_str() {
        "True" => HealthCode::Healthy,
        "False" if pending.is_some_and(|reasons| !reasons.contains(&condition.reason.as_str())) => {
            HealthCode::Degraded
        }
        _ => HealthCode::Progressing,
    };
    HealthStatus::new(code, describe(condition))
}

fn describe(condition: &Condition) -> String {
    match (condition.reason.as_str(), condition.message.as_str()) {
        ("", message) => message.to_owned(),
        (reason, "") => reason.to_owned(),
        (reason, message) => format!("{reason}: {message}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(api_version: &str, kind: &str, status: Value) -> Option<HealthCode> {
        let object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "generation": 2}, "status": status});
        assess(&object.gvk(), &object).map(|health| health.status)
    }

    #[test]
    fn conditions_tell_a_fault_from_not_yet() {
        use HealthCode::*;
        let ready = |status: &str, reason: &str| json!({"conditions": [{"type": "Ready", "status": status, "reason": reason}]});
        let certificate = |status| of("cert-manager.io/v1", "Certificate", status);
        assert_eq!(certificate(ready("True", "Ready")), Some(Healthy));
        assert_eq!(certificate(ready("False", "DoesNotExist")), Some(Progressing));
        assert_eq!(certificate(ready("False", "Denied")), Some(Degraded));
        assert_eq!(certificate(json!({})), Some(Progressing));
    }

    #[test]
    fn an_old_generation_is_on_its_way() {
        let status = json!({"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True"}]});
        assert_eq!(of("helm.toolkit.fluxcd.io/v2", "HelmRelease", status), Some(HealthCode::Progressing));
    }

    #[test]
    fn groups_match_by_suffix_and_unknown_groups_have_no_health() {
        let ready = json!({"conditions": [{"type": "Ready", "status": "True"}]});
        assert_eq!(of("s3.aws.upbound.io/v1", "Bucket", ready.clone()), Some(HealthCode::Healthy));
        assert_eq!(of("example.org/v1", "Thing", ready), None);
    }

    #[test]
    fn phases_and_stalled() {
        let phase = |text: &str| of("argoproj.io/v1alpha1", "Rollout", json!({"phase": text}));
        assert_eq!(phase("Paused"), Some(HealthCode::Suspended));
        assert_eq!(phase("Degraded"), Some(HealthCode::Degraded));
        let stalled = json!({"conditions": [{"type": "Stalled", "status": "True"}, {"type": "Ready", "status": "Unknown"}]});
        assert_eq!(of("source.toolkit.fluxcd.io/v1", "GitRepository", stalled), Some(HealthCode::Degraded));
    }
}
