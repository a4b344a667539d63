//! Kinds about volumes and devices: `storage.k8s.io` and `resource.k8s.io`.

use tiphys_value::json;

use super::kind::{Generation, Kind, PLAIN, StatusWrite};

const STORAGE: Kind = Kind { group: "storage.k8s.io", ..PLAIN };
const RESOURCE: Kind = Kind {
    group: "resource.k8s.io",
    status_write: StatusWrite::ALONE,
    is_returned_when_deleted: true,
    ..PLAIN
};

pub(super) const KINDS: &[Kind] = &[
    Kind { plural: "csidrivers", is_updated_by_version: true, is_returned_when_deleted: true, ..STORAGE },
    Kind { plural: "csinodes", is_updated_by_version: true, is_returned_when_deleted: true, ..STORAGE },
    Kind { plural: "csistoragecapacities", is_updated_by_version: true, ..STORAGE },
    Kind { plural: "storageclasses", is_returned_when_deleted: true, ..STORAGE },
    Kind {
        plural: "volumeattachments",
        first_status: || json!({"attached": false}),
        status_write: StatusWrite::ALONE,
        is_updated_by_version: true,
        is_returned_when_deleted: true,
        ..STORAGE
    },
    Kind {
        plural: "volumeattributesclasses",
        is_returned_when_deleted: true,
        protection: Some("kubernetes.io/vac-protection"),
        ..STORAGE
    },
    Kind { plural: "deviceclasses", generation: Generation::Spec, ..RESOURCE },
    Kind { plural: "resourceclaims", ..RESOURCE },
    Kind { plural: "resourceclaimtemplates", ..RESOURCE },
    Kind { plural: "resourceslices", generation: Generation::Spec, ..RESOURCE },
];
