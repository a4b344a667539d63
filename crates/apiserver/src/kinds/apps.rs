//! Kinds of the group `apps`.

use tiphys_value::json;

use super::{
    daemon_sets,
    kind::{Generation, Kind, NameRule, PLAIN, StatusWrite},
};

const GROUP: &str = "apps";
const TEMPLATE: Option<&[&str]> = Some(&["spec", "template"]);

pub(super) const KINDS: &[Kind] = &[
    Kind {
        group: GROUP,
        plural: "daemonsets",
        generation: Generation::Spec,
        first_status: || json!({"currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0}),
        pod_template: TEMPLATE,
        count: daemon_sets::count_template,
        assume: daemon_sets::assume_template_generation,
        forget_assumed: daemon_sets::forget_template_generation,
        ..PLAIN
    },
    Kind {
        group: GROUP,
        plural: "deployments",
        generation: Generation::SpecAnd("annotations"),
        status_write: StatusWrite {
            metadata: &["managedFields", "annotations", "finalizers"],
            ignored: &["spec", "metadata.labels"],
        },
        pod_template: TEMPLATE,
        ..PLAIN
    },
    Kind {
        group: GROUP,
        plural: "replicasets",
        generation: Generation::Spec,
        first_status: || json!({"replicas": 0}),
        pod_template: TEMPLATE,
        ..PLAIN
    },
    Kind {
        group: GROUP,
        plural: "statefulsets",
        name: NameRule::Label,
        generation: Generation::Spec,
        first_status: || json!({"replicas": 0, "availableReplicas": 0}),
        pod_template: TEMPLATE,
        ..PLAIN
    },
];
