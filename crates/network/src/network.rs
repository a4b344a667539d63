//! The network of one cluster, as data.

use std::collections::BTreeMap;

use crate::{
    endpoint::{Namespaces, Pod, Service},
    object::ObjectId,
    plugin::Cni,
    policy::{Policy, TierPosition},
};

/// What lives in one cluster, as far as its network is concerned.
#[derive(Clone, Debug, Default)]
pub struct Network {
    /// Everything that lives there.
    pub objects: Vec<ObjectId>,
    /// Workloads, each as one pod.
    pub pods: Vec<Pod>,
    /// Services.
    pub services: Vec<Service>,
    /// Labels of namespaces.
    pub namespaces: Namespaces,
    /// Policies of every kind that is understood.
    pub policies: Vec<Policy>,
    /// Objects that restrict the network in ways that are not understood: then nothing is known for sure.
    pub opaque: Vec<ObjectId>,
    /// Calico's tiers by name.
    pub calico_tiers: BTreeMap<String, TierPosition>,
    /// Whether something gives labels to addresses that are no pod's.
    pub has_sets: bool,
    /// The CNIs that the cluster may have.
    pub cnis: Vec<Cni>,
    /// Whether the cloud runs the control plane; `None` if the repository does not say.
    pub is_managed: Option<bool>,
}

impl Network {
    /// The pods of a Service.
    pub fn pods_of<'a>(&'a self, service: &'a Service) -> impl Iterator<Item = &'a Pod> {
        self.pods.iter().filter(move |pod| pod.namespace == service.namespace && service.selects(&pod.labels))
    }

    /// A Service by namespace and name.
    pub fn service(&self, namespace: &str, name: &str) -> Option<&Service> {
        self.services.iter().find(|service| service.namespace == namespace && service.name == name)
    }
}
