//! The compact text of schemas, and the scopes of built-in kinds.
//!
//! Of every type only the fields are kept below which a list is merged:
//!
//! ```text
//! type 12 api.apps.v1.Deployment
//! spec >13            an object of type 13
//! * >4                values of any other key
//! ports[a,b] >7       a list of type 7, merged by the keys a and b
//! finalizers[]        a list of scalars, merged as a set
//! volumes! >9         a list that is replaced (kept for what a merged list holds it)
//! kind apps/v1 Deployment 12
//! ```

use std::{collections::HashMap, fmt::Write, sync::LazyLock};

use super::{Field, Schemas, Type, TypeId};

/// Kinds of which kustomize knows the scope without any schema. Cluster-scoped ones.
const CLUSTER_SCOPED: &str = "
admissionregistration.k8s.io/v1 MutatingWebhookConfiguration ValidatingWebhookConfiguration
admissionregistration.k8s.io/v1beta1 MutatingWebhookConfiguration ValidatingWebhookConfiguration
apiextensions.k8s.io/v1 CustomResourceDefinition
apiextensions.k8s.io/v1beta1 CustomResourceDefinition
apiregistration.k8s.io/v1 APIService
apiregistration.k8s.io/v1beta1 APIService
certificates.k8s.io/v1 CertificateSigningRequest
certificates.k8s.io/v1beta1 CertificateSigningRequest
flowcontrol.apiserver.k8s.io/v1beta1 FlowSchema PriorityLevelConfiguration
networking.k8s.io/v1 IngressClass
networking.k8s.io/v1beta1 IngressClass
node.k8s.io/v1 RuntimeClass
node.k8s.io/v1beta1 RuntimeClass
policy/v1beta1 PodSecurityPolicy
rbac.authorization.k8s.io/v1 ClusterRole ClusterRoleBinding
rbac.authorization.k8s.io/v1beta1 ClusterRole ClusterRoleBinding
scheduling.k8s.io/v1 PriorityClass
scheduling.k8s.io/v1beta1 PriorityClass
storage.k8s.io/v1 CSIDriver CSINode StorageClass VolumeAttachment
storage.k8s.io/v1beta1 CSIDriver CSINode StorageClass VolumeAttachment
v1 ComponentStatus Namespace Node NodeProxyOptions PersistentVolume
";

/// Namespaced ones, which a custom schema cannot declare otherwise.
const NAMESPACED: &str = "
apps/v1 ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet
autoscaling/v1 HorizontalPodAutoscaler Scale
autoscaling/v2beta1 HorizontalPodAutoscaler
autoscaling/v2beta2 HorizontalPodAutoscaler
batch/v1 CronJob Job
batch/v1beta1 CronJob
coordination.k8s.io/v1 Lease
coordination.k8s.io/v1beta1 Lease
discovery.k8s.io/v1 EndpointSlice
discovery.k8s.io/v1beta1 EndpointSlice
events.k8s.io/v1 Event
events.k8s.io/v1beta1 Event
extensions/v1beta1 Ingress
networking.k8s.io/v1 Ingress NetworkPolicy
networking.k8s.io/v1beta1 Ingress
policy/v1 PodDisruptionBudget
policy/v1beta1 PodDisruptionBudget
rbac.authorization.k8s.io/v1 Role RoleBinding
rbac.authorization.k8s.io/v1beta1 Role RoleBinding
storage.k8s.io/v1beta1 CSIStorageCapacity
v1 ConfigMap Endpoints Event LimitRange PersistentVolumeClaim Pod PodAttachOptions PodExecOptions
v1 PodPortForwardOptions PodProxyOptions PodTemplate ReplicationController ResourceQuota Secret Service
v1 ServiceAccount ServiceProxyOptions
";

/// Whether kinds are namespaced, by `apiVersion` and kind.
static SCOPES: LazyLock<HashMap<(&str, &str), bool>> = LazyLock::new(|| {
    let kinds = |table: &'static str, namespaced: bool| {
        table.lines().flat_map(move |line| {
            let mut words = line.split(' ');
            let api_version = words.next().unwrap_or_default();
            words.map(move |kind| ((api_version, kind), namespaced))
        })
    };
    kinds(CLUSTER_SCOPED, false).chain(kinds(NAMESPACED, true)).collect()
});

/// Whether a built-in kind is namespaced; `None` for others.
pub(super) fn scope(api_version: &str, kind: &str) -> Option<bool> {
    let scopes: &HashMap<(&str, &str), bool> = &SCOPES;
    scopes.get(&(api_version, kind)).copied()
}

/// What all names of Kubernetes' definitions begin with.
const PREFIX: &str = "io.k8s.";

/// Reads what [`write`] wrote.
pub(super) fn read(text: &str) -> Schemas {
    let mut set = Schemas::default();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split(' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("type"), Some(of), name, None) => {
                let of = of.parse().expect("the table is generated");
                set.types.push(Type::default());
                set.names.extend(name.map(|name| (format!("{PREFIX}{name}"), of)));
            }
            (Some("kind"), Some(api_version), Some(kind), Some(of)) => {
                let of = of.parse().expect("the table is generated");
                set.kinds.insert((api_version.to_owned(), kind.to_owned()), of);
            }
            (Some(name), of, _, _) if !name.is_empty() => {
                let of = of.and_then(|of| of.strip_prefix('>')).and_then(|of| of.parse().ok());
                let current = set.types.last_mut().expect("fields follow a type");
                read_field(current, name, of);
            }
            _ => {}
        }
    }
    set
}

fn read_field(current: &mut Type, name: &str, of: Option<TypeId>) {
    let (name, merge_keys) = match name.strip_suffix(']').and_then(|name| name.split_once('[')) {
        Some((name, keys)) => {
            (name, Some(keys.split(',').filter(|key| !key.is_empty()).map(str::to_owned).collect()))
        }
        None => (name.trim_end_matches('!'), None),
    };
    let field = Field { merge_keys, of };
    if name == "*" {
        current.additional = Some(field);
    } else {
        current.fields.insert(name.to_owned(), field);
    }
}

/// Writes types and kinds below which lists are merged.
pub(super) fn write(set: &Schemas) -> String {
    let kept = kept_types(set);
    let number: HashMap<TypeId, usize> = kept.iter().enumerate().map(|(index, of)| (*of, index)).collect();
    let mut text = String::new();
    let names: HashMap<TypeId, &str> =
        set.names.iter().filter_map(|(name, of)| Some((*of, name.strip_prefix(PREFIX)?))).collect();
    for (index, of) in kept.iter().enumerate() {
        let name = names.get(of).map(|name| format!(" {name}")).unwrap_or_default();
        let _ = writeln!(text, "type {index}{name}");
        write_type(&mut text, &set.types[*of as usize], &number);
    }
    let mut kinds: Vec<_> = set.kinds.iter().filter(|(_, of)| number.contains_key(of)).collect();
    kinds.sort();
    for ((api_version, kind), of) in kinds {
        let _ = writeln!(text, "kind {api_version} {kind} {}", number[of]);
    }
    text
}

fn write_type(text: &mut String, of: &Type, number: &HashMap<TypeId, usize>) {
    let mut fields: Vec<(&str, &Field)> =
        of.fields.iter().map(|(name, field)| (name.as_str(), field)).collect();
    fields.sort_by_key(|(name, _)| *name);
    fields.extend(of.additional.as_ref().map(|field| ("*", field)));
    for (name, field) in fields {
        let child = field.of.and_then(|of| number.get(&of));
        if field.merge_keys.is_none() && child.is_none() {
            continue;
        }
        text.push_str(name);
        if let Some(keys) = &field.merge_keys {
            let _ = write!(text, "[{}]", keys.join(","));
        }
        if let Some(child) = child {
            let _ = write!(text, " >{child}");
        }
        text.push('\n');
    }
}

/// The types that hold a merged list, directly or below, in a stable order.
fn kept_types(set: &Schemas) -> Vec<TypeId> {
    let mut kept = vec![false; set.types.len()];
    loop {
        let mut changed = false;
        for (index, of) in set.types.iter().enumerate() {
            let matters = |field: &Field| {
                field.merge_keys.is_some() || field.of.is_some_and(|of| kept.get(of as usize) == Some(&true))
            };
            if !kept[index] && of.fields.values().chain(of.additional.as_ref()).any(matters) {
                kept[index] = true;
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    kept.iter().enumerate().filter(|(_, keep)| **keep).map(|(index, _)| index as TypeId).collect()
}
