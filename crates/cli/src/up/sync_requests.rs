//! Asking for the syncs that a person would ask for.

use tiphys_cluster::{Cluster, PatchType};
use tiphys_model::names;
use tiphys_value::{GroupVersionKind, json};

use super::app_rows::Row;

/// Who is told to have asked.
const ASKER: &str = "tiphys-up";

/// Asks for a sync of an Application, without pruning.
///
/// # Errors
/// The cluster refuses.
pub(crate) async fn ask(cluster: &Cluster, row: &Row) -> anyhow::Result<()> {
    let kind = GroupVersionKind::from_api_version(names::API_VERSION, "Application");
    let resource = cluster.resource(&kind).await?;
    let operation = json!({"operation": {"initiatedBy": {"username": ASKER}, "sync": {}}});
    cluster.patch(&resource, (&row.namespace, &row.name), "", PatchType::Merge, &operation, ASKER).await?;
    Ok(())
}
