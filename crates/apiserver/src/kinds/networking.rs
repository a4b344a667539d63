//! Kinds about traffic: `networking.k8s.io` and `discovery.k8s.io`.

use tiphys_value::json;

use super::kind::{Generation, Kind, NameRule, PLAIN, StatusWrite};

const GROUP: &str = "networking.k8s.io";

pub(super) const KINDS: &[Kind] = &[
    Kind { group: GROUP, plural: "ingressclasses", generation: Generation::Spec, ..PLAIN },
    Kind {
        group: GROUP,
        plural: "ingresses",
        generation: Generation::Spec,
        first_status: || json!({"loadBalancer": {}}),
        stored_as: Some("ingress"),
        ..PLAIN
    },
    Kind { group: GROUP, plural: "ipaddresses", name: NameRule::Address, ..PLAIN },
    Kind { group: GROUP, plural: "networkpolicies", generation: Generation::Spec, ..PLAIN },
    Kind { group: GROUP, plural: "servicecidrs", status_write: StatusWrite::ALONE, ..PLAIN },
    Kind {
        group: "discovery.k8s.io",
        plural: "endpointslices",
        generation: Generation::SpecAnd("labels"),
        ..PLAIN
    },
];
