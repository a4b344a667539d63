//! The cluster of a destination for a single use, as commands need it.

use tiphys_cluster::{Cluster, ClusterError};
use tiphys_model::{Destination, names};
use tiphys_value::Value;

use super::{Declared, find};
use crate::{clusters::is_cluster_secret, settings::is_own};

/// Connects to the cluster that a destination means: `home` is the engine's own, others are declared by
/// cluster Secrets, of which all of the engine's namespace are to be given. What it serves is known
/// afterwards.
///
/// # Errors
/// No such cluster is declared, or it cannot be reached.
pub async fn open_destination(
    home: &Cluster,
    secrets: &[Value],
    destination: &Destination,
) -> Result<Cluster, ClusterError> {
    if is_own(destination) {
        return Ok(home.clone());
    }
    let mut declared: Vec<Declared> =
        secrets.iter().filter(|secret| is_cluster_secret(secret)).filter_map(Declared::read).collect();
    let named = declared.iter().map(|one| (one.info.server.as_str(), one.info.name.as_str()));
    let server = find(destination, named).map_err(ClusterError::Config)?;
    declared.retain(|one| one.info.server == server);
    match declared.pop().filter(|_| server != names::IN_CLUSTER_SERVER) {
        None => Ok(home.clone()),
        Some(one) => {
            let cluster = one.access()?.open().await?;
            cluster.discover().await?;
            Ok(cluster)
        }
    }
}
