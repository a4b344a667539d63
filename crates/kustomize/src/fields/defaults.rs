//! Kustomize's default field specs, in a compact notation.
//!
//! A line is `[group/][version/]Kind path…`; `*` stands for any kind, `+` before a path says to
//! create it. A name that starts with `@` stands for several lines: kinds with a pod template.

use std::sync::{Arc, LazyLock};

use super::config::{NameReference, TransformerConfig};
use crate::{kustomization::model::FieldSpec, resid::Gvk};

/// Where the pod spec stands in kinds that have one.
const POD_SPECS: [(&str, &str); 8] = [
    ("v1:Pod", "spec"),
    ("PodTemplate", "template/spec"),
    ("Deployment", "spec/template/spec"),
    ("ReplicaSet", "spec/template/spec"),
    ("DaemonSet", "spec/template/spec"),
    ("StatefulSet", "spec/template/spec"),
    ("Job", "spec/template/spec"),
    ("CronJob", "spec/jobTemplate/spec/template/spec"),
];

/// As [`POD_SPECS`], for references that kustomize knows in workload kinds only.
const WORKLOADS: [(&str, &str); 7] = [
    ("Pod", "spec"),
    ("StatefulSet", "spec/template/spec"),
    ("Deployment", "spec/template/spec"),
    ("ReplicationController", "spec/template/spec"),
    ("CronJob", "spec/jobTemplate/spec/template/spec"),
    ("Job", "spec/template/spec"),
    ("DaemonSet", "spec/template/spec"),
];

/// Kinds in whose containers `$(VAR)` is replaced.
const VAR_KINDS: [(&str, &str); 7] = [
    ("CronJob", "spec/jobTemplate/spec/template/spec"),
    ("DaemonSet", "spec/template/spec"),
    ("Deployment", "spec/template/spec"),
    ("Job", "spec/template/spec"),
    ("Pod", "spec"),
    ("ReplicaSet", "spec/template/spec"),
    ("StatefulSet", "spec/template/spec"),
];

const LABELS: &str = "
* +metadata/labels
v1:ReplicationController +spec/template/metadata/labels
Deployment +spec/template/metadata/labels
ReplicaSet +spec/template/metadata/labels
DaemonSet +spec/template/metadata/labels
apps/:StatefulSet +spec/template/metadata/labels +spec/volumeClaimTemplates[]/metadata/labels
batch/:Job +spec/template/metadata/labels
batch/:CronJob +spec/jobTemplate/metadata/labels +spec/jobTemplate/spec/template/metadata/labels
";

const SELECTORS: &str = "
v1:Service +spec/selector
v1:ReplicationController +spec/selector
Deployment +spec/selector/matchLabels
ReplicaSet +spec/selector/matchLabels
DaemonSet +spec/selector/matchLabels
apps/:StatefulSet +spec/selector/matchLabels
batch/:Job spec/selector/matchLabels
batch/:CronJob spec/jobTemplate/spec/selector/matchLabels
policy/:PodDisruptionBudget spec/selector/matchLabels
networking.k8s.io/:NetworkPolicy spec/podSelector/matchLabels spec/ingress/from/podSelector/matchLabels spec/egress/to/podSelector/matchLabels
";

/// Selectors below the pod spec of Deployments and StatefulSets.
const POD_SELECTORS: [&str; 5] = [
    "affinity/podAffinity/preferredDuringSchedulingIgnoredDuringExecution/podAffinityTerm/labelSelector/matchLabels",
    "affinity/podAffinity/requiredDuringSchedulingIgnoredDuringExecution/labelSelector/matchLabels",
    "affinity/podAntiAffinity/preferredDuringSchedulingIgnoredDuringExecution/podAffinityTerm/labelSelector/matchLabels",
    "affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution/labelSelector/matchLabels",
    "topologySpreadConstraints/labelSelector/matchLabels",
];

const ANNOTATIONS: &str = "
* +metadata/annotations
v1:ReplicationController +spec/template/metadata/annotations
Deployment +spec/template/metadata/annotations
ReplicaSet +spec/template/metadata/annotations
DaemonSet +spec/template/metadata/annotations
StatefulSet +spec/template/metadata/annotations
batch/:Job +spec/template/metadata/annotations
batch/:CronJob +spec/jobTemplate/metadata/annotations +spec/jobTemplate/spec/template/metadata/annotations
";

const NAMESPACE: &str = "
Namespace +metadata/name
apiregistration.k8s.io/:APIService +spec/service/namespace
apiextensions.k8s.io/:CustomResourceDefinition spec/conversion/webhook/clientConfig/service/namespace
";

const IMAGES: &str = "
* +spec/containers[]/image +spec/initContainers[]/image +spec/volumes[]/image/reference
* +spec/template/spec/containers[]/image +spec/template/spec/initContainers[]/image
* +spec/template/spec/volumes[]/image/reference
";

const REPLICAS: &str = "
Deployment +spec/replicas
ReplicationController +spec/replicas
ReplicaSet +spec/replicas
StatefulSet +spec/replicas
";

const VARS: &str = "
CronJob spec/jobTemplate/spec/template/volumes/nfs/server
DaemonSet spec/template/spec/volumes/nfs/server
Deployment spec/template/spec/volumes/nfs/server spec/template/metadata/annotations
Ingress spec/rules/host spec/tls/hosts spec/tls/secretName
Job spec/template/spec/volumes/nfs/server
Pod spec/volumes/nfs/server
ReplicaSet spec/template/spec/volumes/nfs/server
Service spec/ports/port spec/ports/targetPort
StatefulSet spec/volumeClaimTemplates/spec/nfs/server
PersistentVolume spec/nfs/server
* metadata/labels metadata/annotations
";

/// Paths below each kind of container in which `$(VAR)` is replaced.
const VAR_PATHS: [&str; 4] = ["args", "command", "env/value", "volumeMounts/mountPath"];

/// Referred kinds: each begins with `=`, followed by the fields that refer to it. `@pod` applies its
/// paths to [`POD_SPECS`], `@workload` to [`WORKLOADS`].
const REFERENCES: &str = r"
=Deployment
HorizontalPodAutoscaler spec/scaleTargetRef/name
=ReplicationController
HorizontalPodAutoscaler spec/scaleTargetRef/name
=ReplicaSet
HorizontalPodAutoscaler spec/scaleTargetRef/name
=StatefulSet
HorizontalPodAutoscaler spec/scaleTargetRef/name
=v1:ConfigMap
@pod volumes/configMap/name volumes/projected/sources/configMap/name
@pod containers/env/valueFrom/configMapKeyRef/name initContainers/env/valueFrom/configMapKeyRef/name
@pod containers/envFrom/configMapRef/name initContainers/envFrom/configMapRef/name
Node spec/configSource/configMap
Role rules/resourceNames
ClusterRole rules/resourceNames
Ingress metadata/annotations/nginx.ingress.kubernetes.io\/fastcgi-params-configmap
=v1:Secret
@pod volumes/secret/secretName volumes/projected/sources/secret/name imagePullSecrets/name
@pod containers/env/valueFrom/secretKeyRef/name initContainers/env/valueFrom/secretKeyRef/name
@pod containers/envFrom/secretRef/name initContainers/envFrom/secretRef/name
Ingress spec/tls/secretName metadata/annotations/ingress.kubernetes.io\/auth-secret
Ingress metadata/annotations/nginx.ingress.kubernetes.io\/auth-secret
Ingress metadata/annotations/nginx.ingress.kubernetes.io\/auth-tls-secret
ServiceAccount imagePullSecrets/name
StorageClass parameters/secretName parameters/adminSecretName parameters/userSecretName parameters/secretRef
Role rules/resourceNames
ClusterRole rules/resourceNames
serving.knative.dev/v1:Service spec/template/spec/containers/env/valueFrom/secretKeyRef/name
PersistentVolume spec/azureFile/secretName
=v1:Service
apps/:StatefulSet spec/serviceName
Ingress spec/rules/http/paths/backend/serviceName spec/backend/serviceName
Ingress spec/rules/http/paths/backend/service/name spec/defaultBackend/service/name
apiregistration.k8s.io/:APIService spec/service/name
admissionregistration.k8s.io/:ValidatingWebhookConfiguration webhooks/clientConfig/service
admissionregistration.k8s.io/:MutatingWebhookConfiguration webhooks/clientConfig/service
=rbac.authorization.k8s.io/:Role
rbac.authorization.k8s.io/:RoleBinding roleRef/name
=rbac.authorization.k8s.io/:ClusterRole
rbac.authorization.k8s.io/:RoleBinding roleRef/name
rbac.authorization.k8s.io/:ClusterRoleBinding roleRef/name
=v1:ServiceAccount
rbac.authorization.k8s.io/:RoleBinding subjects
rbac.authorization.k8s.io/:ClusterRoleBinding subjects
@workload serviceAccountName
=v1:PersistentVolumeClaim
@workload volumes/persistentVolumeClaim/claimName
=v1:PersistentVolume
PersistentVolumeClaim spec/volumeName
ClusterRole rules/resourceNames
=storage.k8s.io/v1:StorageClass
PersistentVolume spec/storageClassName
PersistentVolumeClaim spec/storageClassName
StatefulSet spec/volumeClaimTemplates/spec/storageClassName
=scheduling.k8s.io/v1:PriorityClass
@workload priorityClassName
=networking.k8s.io/v1/v1:IngressClass
Ingress spec/ingressClassName
=admissionregistration.k8s.io/:ValidatingAdmissionPolicy
admissionregistration.k8s.io/:ValidatingAdmissionPolicyBinding spec/policyName
";

static CONFIG: LazyLock<Arc<TransformerConfig>> = LazyLock::new(|| Arc::new(make()));

pub(super) fn config() -> Arc<TransformerConfig> {
    CONFIG.clone()
}

fn make() -> TransformerConfig {
    let mut common_labels = specs(SELECTORS);
    for kind in ["apps/:Deployment", "apps/:StatefulSet"] {
        common_labels.extend(POD_SELECTORS.map(|path| spec(kind, &format!("spec/template/spec/{path}"))));
    }
    common_labels.extend(specs(LABELS));
    let mut var_reference = specs(VARS);
    for (kind, root) in VAR_KINDS {
        for containers in ["containers", "initContainers"] {
            var_reference.extend(VAR_PATHS.map(|path| spec(kind, &format!("{root}/{containers}/{path}"))));
        }
    }
    let mut config = TransformerConfig {
        name_prefix: vec![spec("*", "metadata/name")],
        name_suffix: vec![spec("*", "metadata/name")],
        namespace: specs(NAMESPACE),
        common_labels,
        labels: Vec::new(),
        template_labels: specs(LABELS),
        common_annotations: specs(ANNOTATIONS),
        name_reference: references(),
        var_reference,
        images: specs(IMAGES),
        replicas: specs(REPLICAS),
    };
    config.sort();
    config
}

/// `group/version:Kind`, each part optional.
fn gvk(text: &str) -> Gvk {
    let (api_version, kind) = text.rsplit_once(':').unwrap_or(("", text));
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let kind = if kind == "*" { "" } else { kind };
    Gvk { group: group.into(), version: version.into(), kind: kind.into() }
}

fn spec(kind: &str, path: &str) -> FieldSpec {
    let (path, create) = path.strip_prefix('+').map_or((path, false), |path| (path, true));
    FieldSpec { gvk: gvk(kind), path: path.to_owned(), create }
}

fn specs(table: &str) -> Vec<FieldSpec> {
    let lines = table.lines().filter_map(|line| line.split_once(' '));
    lines.flat_map(|(kind, paths)| paths.split(' ').map(move |path| spec(kind, path))).collect()
}

fn references() -> Vec<NameReference> {
    let mut references: Vec<NameReference> = Vec::new();
    for line in REFERENCES.lines().filter(|line| !line.is_empty()) {
        if let Some(target) = line.strip_prefix('=') {
            references.push(NameReference { gvk: gvk(target), field_specs: Vec::new() });
        } else if let (Some((kind, paths)), Some(reference)) = (line.split_once(' '), references.last_mut()) {
            let roots: &[(&str, &str)] = match kind {
                "@pod" => &POD_SPECS,
                "@workload" => &WORKLOADS,
                _ => &[],
            };
            for path in paths.split(' ') {
                if roots.is_empty() {
                    reference.field_specs.push(spec(kind, path));
                }
                let below = roots.iter().map(|(kind, root)| spec(kind, &format!("{root}/{path}")));
                reference.field_specs.extend(below);
            }
        }
    }
    references
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_notation() {
        let known = gvk("networking.k8s.io/v1/v1:IngressClass");
        assert_eq!((known.group.as_str(), known.version.as_str()), ("networking.k8s.io/v1", "v1"));
        let known = gvk("apps/:StatefulSet");
        assert_eq!((known.group.as_str(), known.version.as_str()), ("apps", ""));
        assert_eq!(gvk("*"), Gvk::default());
    }

    #[test]
    fn a_secret_is_referred_to_from_every_pod_template() {
        let config = config();
        let secret = config.name_reference.iter().find(|reference| reference.gvk.kind == "Secret").unwrap();
        assert_eq!(secret.field_specs.len(), 8 * 7 + 13);
        assert!(
            secret
                .field_specs
                .contains(&spec("CronJob", "spec/jobTemplate/spec/template/spec/imagePullSecrets/name"))
        );
    }
}
