//! Kinds by which a cluster is run: rights, admission, definitions, priorities, Leases, events.

use tiphys_value::{ObjectExt, Value, json};

use super::{
    admission_policies, definitions,
    kind::{Generation, Kind, NameRule, PLAIN, StatusWrite},
    requests,
};
use crate::rfc3339_seconds;

const ADMISSION: Kind = Kind {
    group: "admissionregistration.k8s.io",
    has_free_finalizers: true,
    generation: Generation::Spec,
    is_updated_by_version: true,
    ..PLAIN
};
const WEBHOOKS: Kind =
    Kind { validate: |_, configuration, _| admission_policies::webhooks(configuration), ..ADMISSION };
const RIGHTS: Kind = Kind {
    group: "rbac.authorization.k8s.io",
    name: NameRule::PathSegment,
    is_created_by_update: true,
    ..PLAIN
};
const FLOW: Kind = Kind {
    group: "flowcontrol.apiserver.k8s.io",
    generation: Generation::Spec,
    status_write: StatusWrite::ALONE,
    ..PLAIN
};

pub(super) const KINDS: &[Kind] = &[
    Kind { plural: "mutatingadmissionpolicies", ..ADMISSION },
    Kind { plural: "mutatingadmissionpolicybindings", ..ADMISSION },
    Kind { plural: "mutatingwebhookconfigurations", ..WEBHOOKS },
    Kind {
        plural: "validatingadmissionpolicies",
        status_write: StatusWrite::ALONE,
        validate: |_, policy, _| admission_policies::validating(policy),
        ..ADMISSION
    },
    Kind { plural: "validatingadmissionpolicybindings", ..ADMISSION },
    Kind { plural: "validatingwebhookconfigurations", ..WEBHOOKS },
    Kind {
        group: "apiextensions.k8s.io",
        plural: "customresourcedefinitions",
        has_free_finalizers: true,
        generation: Generation::Spec,
        stored_as: Some("apiextensions.k8s.io/customresourcedefinitions"),
        is_updated_by_version: true,
        holds_objects: true,
        on_create: |definition, _| definitions::begin_status(definition),
        on_update: |definition, _| definitions::keep_stored_versions(definition),
        validate: definitions::validate,
        ..PLAIN
    },
    Kind {
        group: "apiregistration.k8s.io",
        plural: "apiservices",
        name: NameRule::PathSegment,
        has_free_finalizers: true,
        status_write: StatusWrite::ALONE,
        stored_as: Some("apiregistration.k8s.io/apiservices"),
        is_updated_by_version: true,
        on_create: |service, now| {
            if service.at(&["spec", "service"]).is_none() {
                service["status"] = json!({"conditions": [local_service(&rfc3339_seconds(now))]});
            }
        },
        ..PLAIN
    },
    Kind { plural: "clusterrolebindings", ..RIGHTS },
    Kind { plural: "clusterroles", ..RIGHTS },
    Kind { plural: "rolebindings", ..RIGHTS },
    Kind { plural: "roles", ..RIGHTS },
    Kind {
        group: "certificates.k8s.io",
        plural: "certificatesigningrequests",
        name: NameRule::PathSegment,
        selectable: &["spec.signerName"],
        unowned: requests::unowned,
        on_request: requests::name_requester,
        on_update: requests::keep,
        ..PLAIN
    },
    Kind {
        group: "coordination.k8s.io",
        plural: "leases",
        has_free_finalizers: true,
        is_updated_by_version: true,
        is_created_by_update: true,
        ..PLAIN
    },
    Kind {
        group: "events.k8s.io",
        plural: "events",
        is_created_by_update: true,
        selectable: &[
            "regarding.kind",
            "regarding.namespace",
            "regarding.name",
            "regarding.uid",
            "reason",
            "reportingController",
            "type",
        ],
        ..PLAIN
    },
    Kind {
        plural: "flowschemas",
        deprecation: |version| {
            (version == "v1beta3").then_some(
                "flowcontrol.apiserver.k8s.io/v1beta3 FlowSchema is deprecated in v1.29+, unavailable in v1.32+",
            )
        },
        ..FLOW
    },
    Kind {
        plural: "prioritylevelconfigurations",
        deprecation: |version| {
            (version == "v1beta3").then_some(
                "flowcontrol.apiserver.k8s.io/v1beta3 PriorityLevelConfiguration is deprecated in v1.29+, unavailable in v1.32+",
            )
        },
        ..FLOW
    },
    Kind {
        group: "node.k8s.io",
        plural: "runtimeclasses",
        has_free_finalizers: true,
        is_updated_by_version: true,
        is_created_by_update: true,
        ..PLAIN
    },
    Kind {
        group: "policy",
        plural: "poddisruptionbudgets",
        name: NameRule::PathSegment,
        has_free_finalizers: true,
        generation: Generation::Spec,
        first_status: || json!({"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}),
        is_updated_by_version: true,
        ..PLAIN
    },
    Kind {
        group: "autoscaling",
        plural: "horizontalpodautoscalers",
        first_status: || json!({"currentMetrics": null, "desiredReplicas": 0}),
        ..PLAIN
    },
    Kind {
        group: "scheduling.k8s.io",
        plural: "priorityclasses",
        generation: Generation::Once,
        undeletable: |name| {
            let is_system = matches!(name, "system-node-critical" | "system-cluster-critical");
            is_system.then_some("this is a system priority class and cannot be deleted")
        },
        ..PLAIN
    },
];

/// The condition of an API that the server itself answers.
fn local_service(now: &str) -> Value {
    let message = "Local APIServices are always available";
    json!({"type": "Available", "status": "True", "reason": "Local", "message": message, "lastTransitionTime": now})
}
