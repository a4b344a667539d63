//! What fields are for: those that every object has, and those of the kinds that people write most
//! (`fields.txt`, one a line: the type, the field, the text).

use std::{collections::HashMap, sync::OnceLock};

/// Texts by type (without its package) and field.
fn fields() -> &'static HashMap<&'static str, &'static str> {
    static FIELDS: OnceLock<HashMap<&str, &str>> = OnceLock::new();
    FIELDS
        .get_or_init(|| include_str!("fields.txt").lines().filter_map(|line| line.split_once(' ')).collect())
}

/// `apiVersion`.
pub(super) const API_VERSION: &str =
    "APIVersion defines by which group and version's schema the object is written.";
/// `kind`.
pub(super) const KIND: &str = "Kind says what the object is, such as Deployment; it never changes.";
/// `metadata` of an object.
pub(super) const METADATA: &str =
    "Standard object's metadata: what it is called, to whom it belongs, and what is noted about it.";
/// `metadata` of a list.
pub(super) const LIST_METADATA: &str = "Of which state of the cluster the list is, and how it goes on.";

/// Fields of metadata, and what they are for.
const METADATA_FIELDS: [(&str, &str); 15] = [
    (
        "annotations",
        "Annotations are notes of people and programs under names of their own; nothing is selected by them.",
    ),
    (
        "creationTimestamp",
        "CreationTimestamp is a timestamp: when the server made the object. Set by the server.",
    ),
    ("deletionGracePeriodSeconds", "How many seconds the object was given to end. Set by the server."),
    (
        "deletionTimestamp",
        "When the object is to be gone: it has been deleted, and something still holds it. Set by the server.",
    ),
    ("finalizers", "Who must be done before a deleted object goes; each takes its own entry away."),
    ("generateName", "How the name begins if the server is to make one up."),
    ("generation", "Counts the changes of what is wanted. Set by the server."),
    ("labels", "Labels are names and values by which objects are found and grouped, such as by selectors."),
    ("managedFields", "Which field was set by whom; kept for server-side apply."),
    ("name", "What the object is called: unique among its kind in its namespace."),
    ("namespace", "The namespace in which the object lives; empty if its kind has none."),
    ("ownerReferences", "To which objects this one belongs; it goes when all of them are gone."),
    ("resourceVersion", "Of which state of the object this is; a write that names another one is refused."),
    ("selfLink", "No longer set."),
    ("uid", "Distinguishes the object from all others that ever had its name. Set by the server."),
];

/// What a field of a named type is for, if it is one that every object has.
pub(super) fn describe_field(type_name: &str, has_kind: bool, field: &str) -> Option<&'static str> {
    if type_name.ends_with(".meta.v1.ObjectMeta") {
        return METADATA_FIELDS.iter().find(|(name, _)| *name == field).map(|(_, text)| *text);
    }
    let own = match field {
        _ if !has_kind => None,
        "apiVersion" => Some(API_VERSION),
        "kind" => Some(KIND),
        "metadata" if type_name.ends_with("List") => Some(LIST_METADATA),
        "metadata" => Some(METADATA),
        "spec" => Some("What the object is to be."),
        "status" => Some("What the object was last seen to be. Set by the system."),
        _ => None,
    };
    let name = type_name.rsplit('.').next().unwrap_or(type_name);
    own.or_else(|| fields().get(format!("{name}.{field}").as_str()).copied())
}

/// Kinds, and what their objects are for.
const KINDS: [(&str, &str); 66] = [
    ("APIService", "Hands the requests for a group and version to another server."),
    ("CSIDriver", "Says what a driver of volumes can do and what it needs."),
    ("CSINode", "Which drivers of volumes a node has."),
    ("CSIStorageCapacity", "How much room a storage class has in a part of the cluster."),
    ("CertificateSigningRequest", "Asks a signer for a certificate."),
    ("ClusterRole", "A set of permissions, for the whole cluster or to be bound in namespaces."),
    ("ClusterRoleBinding", "Gives subjects the permissions of a ClusterRole everywhere."),
    ("ConfigMap", "Configuration that is no secret, for pods to read as files or variables."),
    ("ControllerRevision", "A past state of a StatefulSet or DaemonSet, kept to go back to."),
    ("CronJob", "Starts Jobs at the times of a schedule."),
    ("CustomResourceDefinition", "Adds a kind of objects to the API, with its schema."),
    ("DaemonSet", "Keeps one pod on every node that fits."),
    ("Deployment", "Keeps a number of equal pods and rolls them over to a new template."),
    ("DeviceClass", "A kind of devices that pods may claim."),
    ("EndpointSlice", "Addresses and ports behind a Service."),
    (
        "Endpoints",
        "Addresses and ports behind a Service, in the old form; EndpointSlices have taken its place.",
    ),
    ("Event", "Something that happened to an object, told by who did or saw it."),
    ("FlowSchema", "Which requests belong to which priority level."),
    ("HorizontalPodAutoscaler", "Changes the number of pods of a workload by what is measured."),
    ("IPAddress", "An address that something in the cluster holds."),
    ("Ingress", "Which HTTP requests from outside go to which Services."),
    ("IngressClass", "Which controller cares for the Ingresses of a class."),
    ("Job", "Runs pods until enough of them have succeeded."),
    ("Lease", "Says who holds a role, and since when; for electing leaders and for signs of life."),
    ("LimitRange", "Defaults and bounds of what single pods, containers and claims of a namespace ask for."),
    ("LocalSubjectAccessReview", "Asks whether somebody may do something in a namespace."),
    ("MutatingAdmissionPolicy", "Changes objects by expressions when they are written."),
    ("MutatingAdmissionPolicyBinding", "Puts a MutatingAdmissionPolicy in force, and says where."),
    ("MutatingWebhookConfiguration", "Which webhooks may change which objects when they are written."),
    (
        "Namespace",
        "A part of the cluster in which names are unique and on which quotas and permissions are set.",
    ),
    ("NetworkPolicy", "Which traffic pods may receive and send."),
    ("Node", "A machine on which pods run."),
    ("PersistentVolume", "A piece of storage that a claim can be bound to."),
    ("PersistentVolumeClaim", "Asks for storage; pods use it by the claim's name."),
    ("Pod", "Containers that run together on one node and share its network address."),
    ("PodDisruptionBudget", "How many pods of an application may be taken away at a time."),
    ("PodTemplate", "A template for pods."),
    ("PriorityClass", "How important the pods are that name it."),
    (
        "PriorityLevelConfiguration",
        "How many requests of a priority are served at a time, and how others wait.",
    ),
    ("ReplicaSet", "Keeps a number of equal pods; Deployments make them."),
    ("ReplicationController", "Keeps a number of equal pods; Deployments have taken its place."),
    ("ResourceClaim", "Asks for devices."),
    ("ResourceClaimTemplate", "From which each pod gets a ResourceClaim of its own."),
    ("ResourceQuota", "How much a namespace may use in sum."),
    ("ResourceSlice", "Which devices a driver offers."),
    ("Role", "A set of permissions within a namespace."),
    ("RoleBinding", "Gives subjects the permissions of a Role or ClusterRole within a namespace."),
    ("RuntimeClass", "By what containers are run."),
    ("Scale", "How many replicas a workload is to have and has."),
    ("Secret", "Data that only those may read who need it, such as passwords, tokens and keys."),
    ("SelfSubjectAccessReview", "Asks whether oneself may do something."),
    ("SelfSubjectReview", "Asks who one is to the server."),
    ("SelfSubjectRulesReview", "Asks what oneself may do in a namespace."),
    ("Service", "A stable name, address and ports for a changing set of pods."),
    ("ServiceAccount", "Who the programs in pods are to the API."),
    ("ServiceCIDR", "A range from which Services get their addresses."),
    ("StatefulSet", "Keeps pods with lasting names, order and storage."),
    ("StorageClass", "How volumes of a class are made."),
    ("SubjectAccessReview", "Asks whether somebody may do something."),
    ("TokenReview", "Asks whose a token is."),
    ("ValidatingAdmissionPolicy", "Refuses objects by expressions when they are written."),
    ("ValidatingAdmissionPolicyBinding", "Puts a ValidatingAdmissionPolicy in force, and says where."),
    ("ValidatingWebhookConfiguration", "Which webhooks may refuse which objects when they are written."),
    ("VolumeAttachment", "That a volume is to be attached to a node."),
    ("VolumeAttributesClass", "Attributes of volumes that can be changed while they are in use."),
    ("Binding", "Puts a pod on a node."),
];

/// What the objects of a built-in kind are for.
pub(super) fn of_kind(kind: &str) -> Option<&'static str> {
    KINDS.iter().find(|(name, _)| *name == kind).map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use tiphys_schema::Catalog;

    use super::*;

    #[test]
    fn every_text_is_of_a_field_that_there_is() {
        let catalog = Catalog::latest();
        let knows = |name: &str, field: &str| {
            catalog.definitions().iter().any(|definition| {
                definition.name.rsplit('.').next() == Some(name) && definition.fields.contains_key(field)
            })
        };
        let strangers: Vec<_> = fields()
            .keys()
            .filter(|key| key.split_once('.').is_none_or(|(name, field)| !knows(name, field)))
            .collect();
        assert_eq!(strangers, [&""; 0]);
        assert_eq!(
            describe_field("io.k8s.api.core.v1.ContainerPort", false, "protocol"),
            Some("TCP, UDP or SCTP.")
        );
    }
}
