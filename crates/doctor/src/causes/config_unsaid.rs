//! What pods name and is not there, where neither a kubelet's words nor an event were saved: the objects tell
//! it alone.

use tiphys_cause::Cause;
use tiphys_value::{ObjectExt as _, Value};

use crate::{
    Object,
    cluster::{
        items,
        pod_references::{self, Reference},
        pods,
    },
    dependencies,
    finding::Finding,
    search_context::{Ill, Look},
};

pub(crate) fn find(look: &Look<'_>) -> Vec<Finding> {
    look.ill.iter().flat_map(|ill| absent(look, ill)).collect()
}

/// What a workload whose containers wait for their creation needs and what does not exist.
fn absent(look: &Look<'_>, ill: &Ill<'_>) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for pod in &ill.pods {
        let object = Object::from_live(pod);
        let Some(stage) = stage(pod) else { continue };
        let is_told = look.cluster.events(&object).any(|event| event.is_warning());
        if is_told {
            continue;
        }
        if let Some(finding) = provider_class(look, ill, pod).filter(|_| matches!(stage, Stage::Volumes)) {
            found.push(finding);
        }
        if let Some(finding) = attachment(look, ill, pod).filter(|_| matches!(stage, Stage::Volumes)) {
            found.push(finding);
        }
        for (named, field) in needs(pod, stage) {
            let is_known = found.iter().any(|finding| finding.object == named);
            if is_known || look.cluster.live(&named).is_some() || !proves_absence(look, &named) {
                continue;
            }
            let summary = format!("{named} does not exist, and {} needs it", ill.workload);
            let finding = Finding::new(Cause::ConfigMissing, named.clone(), 0.85, summary)
                .since(ill.since)
                .evidence(
                    object.to_string(),
                    format!("{field} names it, and its containers wait to be created"),
                )
                .remedy(format!("Make {named}, or correct the reference in {}.", ill.workload), &[])
                .suffers(object.clone(), "its container is not configured")
                .suffers(ill.workload.clone(), "its pods are not configured");
            found
                .push(dependencies::upstream(look.cluster, &named).into_iter().fold(finding, Finding::below));
        }
    }
    found
}

/// The further network that an annotation names and that is not there.
fn attachment(look: &Look<'_>, ill: &Ill<'_>, pod: &Value) -> Option<Finding> {
    const KIND: &str = "NetworkAttachmentDefinition";
    const ANNOTATION: &str = "k8s.v1.cni.cncf.io/networks";
    // A list in JSON has other forms; those of names are `NAME`, `NAMESPACE/NAME` and `NAME@INTERFACE`.
    let told = pod.annotation(ANNOTATION).filter(|told| !told.contains(['{', '[']))?;
    let named = told.split(',').map(|name| name.split('@').next().unwrap_or(name).trim());
    let mut named = named.filter(|name| !name.is_empty()).map(|name| {
        let (namespace, name) = name.split_once('/').unwrap_or((pod.namespace(), name));
        Object::new(KIND, namespace, name)
    });
    let absent = named.find(|it| look.cluster.live(it).is_none())?;
    if !look.cluster.has_kind(KIND) {
        return None;
    }
    let elsewhere = look.cluster.all(KIND).iter().find(|it| it.name() == absent.name);
    let summary = format!("{absent} does not exist, and {} is to be attached to it", ill.workload);
    let finding = Finding::new(Cause::OperatorReference, ill.workload.clone(), 0.85, summary)
        .field(format!("spec.template.metadata.annotations[{ANNOTATION}]"))
        .since(ill.since)
        .evidence(Object::from_live(pod).to_string(), format!("{ANNOTATION}: {told}"))
        .remedy(format!("Make {absent}, or correct the annotation."), &[])
        .suffers(Object::from_live(pod), "gets no network");
    Some(elsewhere.into_iter().fold(finding, |finding, it| {
        finding.evidence(Object::from_live(it).to_string(), "it has the name in another namespace")
    }))
}

/// The class of provider that a volume of secrets names and that is not there.
fn provider_class(look: &Look<'_>, ill: &Ill<'_>, pod: &Value) -> Option<Finding> {
    const KIND: &str = "SecretProviderClass";
    let volumes = items(pod, &["spec", "volumes"]);
    let mut names = volumes.filter_map(|it| it.str_at(&["csi", "volumeAttributes", "secretProviderClass"]));
    let name = names.find(|name| look.cluster.get(KIND, pod.namespace(), name).is_none())?;
    if !look.cluster.has_kind(KIND) {
        return None;
    }
    let object = Object::new(KIND, pod.namespace(), name);
    let summary = format!("{object} does not exist, and {} mounts what it provides", ill.workload);
    Some(
        Finding::new(Cause::ConfigMissing, object.clone(), 0.85, summary)
            .since(ill.since)
            .evidence(
                Object::from_live(pod).to_string(),
                format!("a volume names {name}, and its containers wait to be created"),
            )
            .remedy(format!("Make {object}, or correct the reference in {}.", ill.workload), &[])
            .suffers(Object::from_live(pod), "its volume is not mounted")
            .suffers(ill.workload.clone(), "its pods have no volume"),
    )
}

/// What a pod waits for.
#[derive(Clone, Copy)]
enum Stage {
    /// Its volumes.
    Volumes,
    /// The variables of a container.
    Variables,
}

/// What a pod on its node waits for, if it waits and its kubelet does not say why.
fn stage(pod: &Value) -> Option<Stage> {
    pod.str_at(&["spec", "nodeName"]).filter(|node| !node.is_empty())?;
    let mut waiting = pods::statuses(pod).filter_map(pods::waiting);
    let has_started =
        pods::statuses(pod).any(|it| it.at(&["state", "running"]).is_some() || pods::ended(it).is_some());
    let first = waiting.find(|(reason, _)| *reason != "PodInitializing")?;
    match first {
        ("ContainerCreating" | "", _) if !has_started => Some(Stage::Volumes),
        ("CreateContainerConfigError", "") => Some(Stage::Variables),
        _ => None,
    }
}

/// Whether a pod on its node waits for its volumes, as far as its containers tell.
pub(super) fn waits_for_volumes(pod: &Value) -> bool {
    matches!(stage(pod), Some(Stage::Volumes))
}

/// The Secrets and ConfigMaps that a pod cannot do without at a stage, with the field that names each.
fn needs(pod: &Value, stage: Stage) -> Vec<(Object, String)> {
    let Some(spec) = pod.get("spec") else { return Vec::new() };
    let named: Vec<Reference<'_>> = match stage {
        Stage::Volumes => pod_references::of_volumes(spec).collect(),
        Stage::Variables => pod_references::of_variables(spec).collect(),
    };
    let needed = named
        .into_iter()
        .filter(|it| it.kind != "PersistentVolumeClaim" && !it.is_optional && !it.name.is_empty())
        // The controller manager gives them to every namespace, and people leave them out.
        .filter(|it| !matches!(it.name, "kube-root-ca.crt" | "openshift-service-ca.crt"));
    needed.map(|it| (Object::new(it.kind, pod.namespace(), it.name), it.named_by.to_string())).collect()
}

/// Whether it proves something that an object was not saved: others of its kind in its namespace were, such
/// as no cluster makes by itself.
pub(crate) fn proves_absence(look: &Look<'_>, object: &Object) -> bool {
    const OF_ITSELF: &[&str] =
        &["kubernetes.io/service-account-token", "helm.sh/release.v1", "kubernetes.io/dockercfg"];
    let is_ordinary = |it: &Value| !it.str_at(&["type"]).is_some_and(|kind| OF_ITSELF.contains(&kind));
    let beside = |it: &&&Value| it.namespace() == object.namespace && is_ordinary(it);
    look.cluster.has_kind(&object.kind)
        && look.cluster.knows_makers()
        && look.cluster.all(&object.kind).iter().any(|it| beside(&it))
}
