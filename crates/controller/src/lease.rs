//! Leader election: of several engines only the one that holds a Lease works (Kubernetes API reference,
//! "Lease").

use std::time::Duration;

use jiff::Timestamp;
use tiphys_cluster::{Cluster, ClusterError};
use tiphys_value::{GroupVersionKind, ObjectExt, Value, json};
use tokio::time::Instant;

/// How long a Lease holds without being renewed.
const HOLDS: Duration = Duration::from_secs(15);
/// After how long without success the holder gives up: before anybody else may take over.
const GIVES_UP: Duration = Duration::from_secs(10);
/// How often it is renewed or asked for.
const EVERY: Duration = Duration::from_secs(2);
/// The name under which it is written.
const FIELD_MANAGER: &str = "tiphys-controller";

/// A Lease and who wants it.
#[derive(Clone, Debug)]
pub struct Lease {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Name of this engine, unique among all.
    pub identity: String,
}

/// What another holder was last seen to have written, and when this clock saw it.
struct ObservedRenewal {
    renewed: String,
    at: Instant,
}

impl Lease {
    /// Waits until the Lease is held. `tell` is told who holds it meanwhile.
    ///
    /// # Errors
    /// The cluster has no Leases, or refuses them.
    pub async fn acquire(&self, cluster: &Cluster, mut tell: impl FnMut(&str)) -> Result<(), ClusterError> {
        let mut seen: Option<ObservedRenewal> = None;
        let mut holder = String::new();
        loop {
            match self.try_once(cluster, &mut seen).await {
                Ok(None) => return Ok(()),
                Ok(Some(other)) if other != holder => {
                    tell(&other);
                    holder = other;
                }
                Ok(Some(_)) => {}
                Err(error) if error.is_transient() || error.is_conflict() => {}
                Err(error) => return Err(error),
            }
            tokio::time::sleep(EVERY).await;
        }
    }

    /// Renews the Lease for as long as that works; returns why it no longer does.
    pub async fn hold(&self, cluster: &Cluster) -> String {
        let mut renewed = Instant::now();
        let mut seen = None;
        loop {
            tokio::time::sleep(EVERY).await;
            match tokio::time::timeout(GIVES_UP, self.try_once(cluster, &mut seen)).await {
                Ok(Ok(None)) => renewed = Instant::now(),
                Ok(Ok(Some(other))) => return format!("{other} took the Lease"),
                Ok(Err(error)) if renewed.elapsed() > GIVES_UP => return error.to_string(),
                Err(_) if renewed.elapsed() > GIVES_UP => return "the cluster does not answer".into(),
                Ok(Err(_)) | Err(_) => {}
            }
        }
    }

    /// Gives the Lease back, so that another engine need not wait for its end.
    pub async fn release(&self, cluster: &Cluster) {
        let Ok(resource) = cluster.resource(&kind()).await else { return };
        let Ok(Some(mut lease)) = cluster.get(&resource, &self.namespace, &self.name).await else { return };
        if lease.str_at(&["spec", "holderIdentity"]) == Some(&self.identity) {
            lease["spec"]["holderIdentity"] = "".into();
            // Whoever comes next waits for its end if this fails.
            let _ = cluster.replace(&lease, FIELD_MANAGER, false).await;
        }
    }

    /// Takes or renews the Lease; who else holds it if that cannot be.
    async fn try_once(
        &self,
        cluster: &Cluster,
        seen: &mut Option<ObservedRenewal>,
    ) -> Result<Option<String>, ClusterError> {
        let resource = cluster.resource(&kind()).await?;
        let Some(there) = cluster.get(&resource, &self.namespace, &self.name).await? else {
            return cluster.create(&self.object(None), FIELD_MANAGER, false).await.map(|_| None);
        };
        let holder = there.str_at(&["spec", "holderIdentity"]).unwrap_or_default();
        if !holder.is_empty() && holder != self.identity && !has_ended(&there, seen) {
            return Ok(Some(holder.to_owned()));
        }
        // A write that somebody else's came before is refused: the object bears its version.
        cluster.replace(&self.object(Some(&there)), FIELD_MANAGER, false).await.map(|_| None)
    }

    fn object(&self, there: Option<&Value>) -> Value {
        let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string();
        let was = there.map(|lease| lease["spec"].clone()).unwrap_or_default();
        let is_ours = was["holderIdentity"] == self.identity.as_str();
        let transitions = was["leaseTransitions"].as_i64().unwrap_or(0);
        let mut lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": {"holderIdentity": self.identity, "leaseDurationSeconds": HOLDS.as_secs(),
                "acquireTime": if is_ours { was["acquireTime"].clone() } else { now.clone().into() },
                "renewTime": now,
                "leaseTransitions": if is_ours || there.is_none() { transitions } else { transitions + 1 }}});
        if let Some(there) = there {
            lease["metadata"]["resourceVersion"] = there.resource_version().into();
        }
        lease
    }
}

fn kind() -> GroupVersionKind {
    GroupVersionKind::new("coordination.k8s.io", "v1", "Lease")
}

/// Whether the holder has let its time pass, by this clock alone: those of two machines may differ.
fn has_ended(lease: &Value, seen: &mut Option<ObservedRenewal>) -> bool {
    let renewed = lease.str_at(&["spec", "renewTime"]).unwrap_or_default();
    let holds = lease.int_at(&["spec", "leaseDurationSeconds"]).and_then(|n| u64::try_from(n).ok());
    let holds = holds.map_or(HOLDS, Duration::from_secs);
    match seen {
        Some(known) if known.renewed == renewed => known.at.elapsed() > holds,
        _ => {
            *seen = Some(ObservedRenewal { renewed: renewed.to_owned(), at: Instant::now() });
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_lease_ends_when_it_was_not_renewed_for_its_time_by_our_clock() {
        let lease = |renewed: &str| json!({"spec": {"renewTime": renewed, "leaseDurationSeconds": 15}});
        let mut seen = None;
        assert!(!has_ended(&lease("1999-01-01T00:00:00Z"), &mut seen), "its clock may be wrong");
        tokio::time::advance(Duration::from_secs(10)).await;
        assert!(!has_ended(&lease("1999-01-01T00:00:00Z"), &mut seen));
        assert!(!has_ended(&lease("1999-01-01T00:00:10Z"), &mut seen), "renewed");
        tokio::time::advance(Duration::from_secs(16)).await;
        assert!(has_ended(&lease("1999-01-01T00:00:10Z"), &mut seen));
    }

    #[test]
    fn a_lease_taken_over_counts_the_transition() {
        let lease = Lease { namespace: "n".into(), name: "l".into(), identity: "b".into() };
        let there = json!({"metadata": {"resourceVersion": "7"}, "spec": {"holderIdentity": "a", "leaseTransitions": 1}});
        let taken = lease.object(Some(&there));
        assert_eq!(taken["spec"]["leaseTransitions"], 2);
        assert_eq!(taken["metadata"]["resourceVersion"], "7");
    }
}
