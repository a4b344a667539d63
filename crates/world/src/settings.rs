//! How a world is set.

use std::time::Duration;

use crate::Behaviours;

/// What is known of what was in the cluster before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// Everything: nothing is there that is not in the store. Nodes and a class are made, and everything is
    /// looked at.
    #[default]
    Fresh,
    /// What was read from another cluster, perhaps in part. It stands still: an object is looked at once it
    /// changes, or something that it depends on. An owner that is not there is unknown, not gone. Nodes and a
    /// class are made only if there is none of either.
    Found,
}

/// How the world is set.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What is known of what was there before.
    pub start: Start,
    /// How many nodes there are.
    pub nodes: u32,
    /// The zones that nodes are spread over; without any they bear no zone.
    pub zones: Vec<String>,
    /// From a pod's arrival on its node until its first container runs.
    pub pod_start: Duration,
    /// How long a container runs that is there to end: a Job's, or any of a pod that is not restarted.
    pub job_run: Duration,
    /// Whether probes wait for their `initialDelaySeconds`: a minute or more of some images. On real time
    /// people would wait with them, and nothing that they see depends on it.
    pub probe_delays: bool,
    /// How often nodes renew their Leases, which last four times as long. A real kubelet does it every ten
    /// seconds: most of what would happen in a quiet cluster.
    pub lease_renewal: Duration,
    /// How long Events are kept.
    pub event_ttl: Duration,
    /// How many pods there may be. A number with nine digits in a manifest must neither fill the memory nor
    /// keep the scheduler busy for ever: the nodes have room for a few hundred.
    pub most_pods: usize,
    /// The certificate authority that every namespace's `kube-root-ca.crt` holds, in PEM.
    pub root_ca: String,
    /// How everything behaves that is no controller of Kubernetes itself.
    pub behaviours: Behaviours,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            start: Start::Fresh,
            nodes: 3,
            zones: Vec::new(),
            pod_start: Duration::from_millis(300),
            job_run: Duration::from_millis(500),
            probe_delays: true,
            lease_renewal: Duration::from_secs(300),
            event_ttl: Duration::from_secs(3600),
            most_pods: 2_000,
            root_ca: String::new(),
            behaviours: Behaviours::builtin(),
        }
    }
}
