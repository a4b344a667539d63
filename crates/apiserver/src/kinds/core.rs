//! Kinds of the core group.

use tiphys_value::json;

use super::{
    claims,
    kind::{Generation, Kind, NameRule, PLAIN, StatusWrite},
    namespaces, pods, services,
};

pub(super) const KINDS: &[Kind] = &[
    Kind {
        plural: "componentstatuses",
        deprecation: |_| Some("v1 ComponentStatus is deprecated in v1.19+"),
        ..PLAIN
    },
    Kind {
        plural: "endpoints",
        stored_as: Some("services/endpoints"),
        is_created_by_update: true,
        deprecation: |_| Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
        ..PLAIN
    },
    Kind {
        plural: "events",
        name: NameRule::PathSegment,
        has_free_finalizers: true,
        is_created_by_update: true,
        selectable: &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        ..PLAIN
    },
    Kind { plural: "limitranges", is_created_by_update: true, ..PLAIN },
    Kind {
        plural: "namespaces",
        name: NameRule::Label,
        first_status: || json!({"phase": "Active"}),
        selectable: &["status.phase"],
        is_returned_when_deleted: true,
        holds_objects: true,
        on_create: |namespace, _| namespaces::complete(namespace),
        on_update: namespaces::keep,
        on_delete: |namespace| namespace["status"]["phase"] = "Terminating".into(),
        is_held: namespaces::is_held,
        undeletable: namespaces::undeletable,
        ..PLAIN
    },
    Kind {
        plural: "nodes",
        // A node may say of itself what it is from the start.
        says_own_status: true,
        selectable: &["spec.unschedulable"],
        stored_as: Some("minions"),
        ..PLAIN
    },
    Kind {
        plural: "persistentvolumeclaims",
        first_status: || json!({"phase": "Pending"}),
        is_returned_when_deleted: true,
        protection: Some("kubernetes.io/pvc-protection"),
        on_create: |claim, _| claims::name_source_twice(claim),
        ..PLAIN
    },
    Kind {
        plural: "persistentvolumes",
        first_status: || json!({"phase": "Pending"}),
        is_returned_when_deleted: true,
        protection: Some("kubernetes.io/pv-protection"),
        on_create: |volume, now| {
            volume["status"]["lastPhaseTransitionTime"] = crate::rfc3339_seconds(now).into();
        },
        ..PLAIN
    },
    Kind {
        plural: "pods",
        generation: Generation::Spec,
        first_status: || json!({"phase": "Pending"}),
        status_write: StatusWrite {
            ignored: &["spec", "metadata.deletionTimestamp", "metadata.ownerReferences"],
            ..StatusWrite::WITH_METADATA
        },
        selectable: &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
        ],
        is_returned_when_deleted: true,
        is_marked_before_gone: true,
        pod_template: Some(&[]),
        on_create: |pod, _| pods::complete(pod),
        after_admission: pods::classify,
        on_update: pods::keep_priority,
        grace: pods::grace,
        validate: pods::validate,
        ..PLAIN
    },
    Kind {
        plural: "podtemplates",
        generation: Generation::Spec,
        is_returned_when_deleted: true,
        pod_template: Some(&["template"]),
        ..PLAIN
    },
    Kind {
        plural: "replicationcontrollers",
        generation: Generation::Spec,
        first_status: || json!({"replicas": 0}),
        selectable: &["status.replicas"],
        stored_as: Some("controllers"),
        orphans_dependents: true,
        pod_template: Some(&["spec", "template"]),
        ..PLAIN
    },
    Kind { plural: "resourcequotas", is_returned_when_deleted: true, ..PLAIN },
    Kind { plural: "secrets", selectable: &["type"], ..PLAIN },
    Kind { plural: "serviceaccounts", is_returned_when_deleted: true, ..PLAIN },
    Kind {
        plural: "services",
        name: NameRule::Label,
        first_status: || json!({"loadBalancer": {}}),
        selectable: &["spec.clusterIP", "spec.type"],
        stored_as: Some("services/specs"),
        is_created_by_update: true,
        is_returned_when_deleted: true,
        on_create: |service, _| services::complete(service, None),
        on_update: |service, current| services::complete(service, Some(current)),
        ..PLAIN
    },
];
