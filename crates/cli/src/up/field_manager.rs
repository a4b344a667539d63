//! As whom `up` writes into clusters.

use tiphys_cluster::ApplyOptions;

/// Who owns the fields of what is put into a cluster here.
pub(super) const FIELD_MANAGER: &str = "tiphys-up";

/// How something is put into a cluster, whoever owned its fields before.
pub(crate) fn apply_options() -> ApplyOptions {
    ApplyOptions { field_manager: FIELD_MANAGER.into(), force: true, dry_run: false, validate: false }
}
