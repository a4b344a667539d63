//! Which network plugin a repository's clusters have, and who runs their control planes.

use std::collections::BTreeSet;

use tiphys_network::Cni;
use tiphys_value::ObjectExt;

use crate::{
    Survey,
    tools::{Component, What},
};

/// What a repository says about the clusters that it is for.
#[derive(Clone, Debug, Default)]
pub struct Detected {
    /// The plugins that it may be; all of them if nothing is said.
    pub cnis: Vec<Cni>,
    /// Whether the cloud runs the control plane.
    pub is_managed: Option<bool>,
}

/// Looks for the network plugin and for who runs the control plane.
pub fn detect(survey: &Survey) -> Detected {
    let tools = survey.tools();
    let mut components: BTreeSet<&str> =
        tools.writers.iter().filter_map(|writer| Some(writer.component()?.name)).collect();
    for app in &survey.apps {
        let spec = &app.application.spec;
        let charts =
            spec.source.iter().chain(&spec.sources).filter_map(|source| Component::of_chart(&source.chart));
        components.extend(charts.map(|component| component.name));
    }
    let mut cnis: BTreeSet<Cni> = BTreeSet::new();
    for object in &survey.objects {
        match object.key.group.as_str() {
            "cilium.io" => cnis.extend([Cni::Cilium]),
            "operator.tigera.io" | "crd.projectcalico.org" | "projectcalico.org" => {
                cnis.extend([Cni::Calico])
            }
            "apps" if object.key.kind == "DaemonSet" => {
                cnis.extend(Cni::of_daemon_set(object.value().name()))
            }
            _ => {}
        }
    }
    cnis.extend(components.iter().filter_map(|name| match *name {
        "calico" => Some(Cni::Calico),
        "cilium" => Some(Cni::Cilium),
        _ => None,
    }));
    let is_managed = is_managed(survey);
    let writes_k3s =
        tools.writers.iter().any(|writer| matches!(&writer.what, What::Address(it) if it.contains("k3s.io")));
    if cnis.is_empty() && writes_k3s {
        cnis.insert(Cni::KubeRouter);
    }
    let cnis = if cnis.is_empty() { Cni::ENFORCING.to_vec() } else { cnis.into_iter().collect() };
    Detected { cnis, is_managed }
}

/// Whether Terraform or annotations name a control plane of the cloud's, or a script makes one.
fn is_managed(survey: &Survey) -> Option<bool> {
    const MANAGED: [&str; 4] = [
        "aws_eks_cluster",
        "google_container_cluster",
        "azurerm_kubernetes_cluster",
        "digitalocean_kubernetes_cluster",
    ];
    let terraform = &survey.tools().terraform;
    let is_resource = terraform.blocks().any(|block| MANAGED.iter().any(|kind| block.is_resource(kind)));
    let is_module = terraform.blocks().filter(|block| block.kind == "module").any(|block| {
        block.str("source").is_some_and(|source| {
            ["/eks/", "/gke", "/aks/", "kubernetes-engine"].iter().any(|it| source.contains(it))
        })
    });
    if is_resource || is_module {
        return Some(true);
    }
    let is_own = survey.tools().ansible.files.values().flat_map(|file| &file.tasks).any(|task| {
        task.text()
            .or(task.argument("cmd"))
            .is_some_and(|text| text.contains("kubeadm init") || text.contains("kubeadm join"))
    });
    is_own.then_some(false)
}
