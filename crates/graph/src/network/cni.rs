//! How network plugins differ in judging packets.

use std::collections::BTreeSet;

use serde_json::Value;
use tiphys_value::ObjectExt;

use crate::{
    Survey,
    tools::{Component, What},
};

/// A network plugin that enforces policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cni {
    /// Calico.
    Calico,
    /// Cilium.
    Cilium,
    /// The VPC CNI of AWS with its network policy agent.
    AwsVpc,
    /// kube-router, which k3s brings.
    KubeRouter,
    /// Antrea.
    Antrea,
    /// OVN-Kubernetes.
    OvnKubernetes,
}

impl Cni {
    /// All of them.
    pub const ENFORCING: [Self; 6] =
        [Self::Calico, Self::Cilium, Self::AwsVpc, Self::KubeRouter, Self::Antrea, Self::OvnKubernetes];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Calico => "Calico",
            Self::Cilium => "Cilium",
            Self::AwsVpc => "the AWS VPC CNI",
            Self::KubeRouter => "kube-router",
            Self::Antrea => "Antrea",
            Self::OvnKubernetes => "OVN-Kubernetes",
        }
    }

    /// Whether egress is judged by the address that a Service is translated to. The VPC CNI's agent sits at
    /// the pod's interface, before kube-proxy translates.
    pub fn judges_translated(self) -> bool {
        self != Self::AwsVpc
    }

    /// Whether an `ipBlock` selects nodes and what runs on them. Cilium gives them identities of their own,
    /// which address blocks do not select (unless `policy-cidr-match-mode: nodes`).
    pub fn blocks_select_nodes(self) -> bool {
        self != Self::Cilium
    }
}

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
            "apps" if object.key.kind == "DaemonSet" => cnis.extend(of_daemon(object.value())),
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

fn of_daemon(object: &Value) -> Option<Cni> {
    match object.name() {
        "calico-node" => Some(Cni::Calico),
        "cilium" => Some(Cni::Cilium),
        "aws-node" => Some(Cni::AwsVpc),
        "antrea-agent" => Some(Cni::Antrea),
        "kube-router" => Some(Cni::KubeRouter),
        "ovnkube-node" => Some(Cni::OvnKubernetes),
        _ => None,
    }
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
