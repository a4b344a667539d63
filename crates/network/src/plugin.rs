//! How network plugins differ in judging packets.

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

    /// The plugin whose agent on each node is a DaemonSet of this name.
    pub fn of_daemon_set(name: &str) -> Option<Self> {
        match name {
            "calico-node" => Some(Self::Calico),
            "cilium" => Some(Self::Cilium),
            "aws-node" => Some(Self::AwsVpc),
            "antrea-agent" => Some(Self::Antrea),
            "kube-router" => Some(Self::KubeRouter),
            "ovnkube-node" => Some(Self::OvnKubernetes),
            _ => None,
        }
    }
}
