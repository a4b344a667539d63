//! A network, read from objects.

use tiphys_model::hook::is_ignored;

use crate::{
    admin, calico, cilium, configuration,
    endpoint::{Pod, Service},
    kubernetes,
    network::Network,
    object::Object,
    operator_pods,
    plugin::Cni,
    policy::PolicyReading,
    rights,
};

impl Network {
    /// The network of some objects, under any CNI.
    pub fn from_objects<'a>(objects: impl Iterator<Item = Object<'a>> + Clone) -> Self {
        let ids = objects.clone().map(|object| object.id).collect();
        let mut network = Self { objects: ids, cnis: Cni::ENFORCING.to_vec(), ..Self::default() };
        for object in objects.clone() {
            network.namespaces.add(object.value);
            network.services.extend(Service::from_object(object));
            // What the engine never applies, such as the tests of a chart, sends nothing.
            network.pods.extend(Pod::from_workload(object).filter(|_| !is_ignored(object.value)));
            network.has_sets |= calico::is_set(object);
            if let Some(operated) = operator_pods::operated(object) {
                network.services.extend(operated.services);
                network.pods.push(operated.pod);
            }
            match policies(object) {
                PolicyReading::Policies(policies) => network.policies.extend(policies),
                PolicyReading::Opaque => network.opaque.push(object.id),
                PolicyReading::Other => {}
            }
        }
        network.calico_tiers = calico::tiers(objects.clone());
        rights::note(&mut network.pods, objects.clone());
        configuration::note(&mut network.pods, objects);
        network
    }
}

/// What an object is to the network.
fn policies(object: Object<'_>) -> PolicyReading {
    match (object.key.group.as_str(), object.key.kind.as_str()) {
        ("networking.k8s.io", "NetworkPolicy") => {
            PolicyReading::Policies(vec![kubernetes::network_policy(object)])
        }
        ("cilium.io", "CiliumNetworkPolicy" | "CiliumClusterwideNetworkPolicy") => cilium::read(object),
        ("crd.projectcalico.org" | "projectcalico.org", "NetworkPolicy" | "GlobalNetworkPolicy") => {
            calico::read(object)
        }
        ("policy.networking.k8s.io", _) => admin::read(object),
        ("networking.k8s.aws", "ClusterNetworkPolicy") => PolicyReading::Opaque,
        _ => PolicyReading::Other,
    }
}
