//! Components that are installed in many ways, known by their charts, addresses and images.

/// A component of clusters that is installed in many ways.
#[derive(Debug, PartialEq, Eq)]
pub struct Component {
    /// Its name.
    pub name: &'static str,
    /// Names of its charts.
    pub charts: &'static [&'static str],
    /// What its makers' addresses contain.
    pub addresses: &'static [&'static str],
    /// Repositories of the images that only it runs, without registry.
    pub images: &'static [&'static str],
}

macro_rules! components {
    ($($name:literal: $charts:expr, $addresses:expr, $images:expr;)*) => {
        const ALL: &[Component] = &[$(Component { name: $name, charts: &$charts, addresses: &$addresses, images: &$images }),*];
    };
}

components! {
    "argo-cd": ["argo-cd", "argocd"], ["argoproj/argo-cd/", "/argo-cd//", "argoproj/argo-cd?"], ["argoproj/argocd"];
    "argo-rollouts": ["argo-rollouts"], ["argoproj/argo-rollouts/"], ["argoproj/argo-rollouts"];
    "argo-workflows": ["argo-workflows"], ["argoproj/argo-workflows/"], ["argoproj/workflow-controller"];
    "aws-ebs-csi-driver": ["aws-ebs-csi-driver"], ["aws-ebs-csi-driver"], ["ebs-csi-driver/aws-ebs-csi-driver"];
    "aws-efs-csi-driver": ["aws-efs-csi-driver"], ["aws-efs-csi-driver"], ["efs-csi-driver/amazon/aws-efs-csi-driver"];
    "aws-load-balancer-controller": ["aws-load-balancer-controller"], ["aws-load-balancer-controller"], ["eks/aws-load-balancer-controller"];
    "aws-vpc-cni": ["aws-vpc-cni"], ["amazon-vpc-cni-k8s"], ["amazon-k8s-cni"];
    "calico": ["tigera-operator", "calico"], ["projectcalico/calico", "projectcalico.org", "tigera-operator"], ["tigera/operator", "calico/node"];
    "cert-manager": ["cert-manager"], ["cert-manager/cert-manager/", "jetstack/cert-manager/"], ["jetstack/cert-manager-controller"];
    "cilium": ["cilium"], ["cilium/cilium/"], ["cilium/cilium"];
    "cloudnative-pg": ["cloudnative-pg"], ["cloudnative-pg/cloudnative-pg/"], ["cloudnative-pg/cloudnative-pg"];
    "cluster-autoscaler": ["cluster-autoscaler"], ["cluster-autoscaler"], ["autoscaling/cluster-autoscaler"];
    "coredns": ["coredns"], ["coredns/deployment/"], ["coredns/coredns"];
    "external-dns": ["external-dns"], ["external-dns/"], ["external-dns/external-dns"];
    "external-secrets": ["external-secrets"], ["external-secrets/external-secrets/"], ["external-secrets/external-secrets"];
    "flannel": ["flannel"], ["flannel-io/flannel", "coreos/flannel"], ["flannel/flannel"];
    "gateway-api": [], ["kubernetes-sigs/gateway-api/"], [];
    "grafana": ["grafana"], [], [];
    "ingress-nginx": ["ingress-nginx"], ["kubernetes/ingress-nginx/", "ingress-nginx/controller"], ["ingress-nginx/controller"];
    "istio": ["istiod"], ["istio/istio/"], ["istio/pilot"];
    "karpenter": ["karpenter"], [], ["karpenter/controller"];
    "keda": ["keda"], ["kedacore/keda/"], ["kedacore/keda"];
    "kube-prometheus-stack": ["kube-prometheus-stack"], [], [];
    "kyverno": ["kyverno"], ["kyverno/kyverno/"], ["kyverno/kyverno"];
    "longhorn": ["longhorn"], ["longhorn/longhorn/"], ["longhornio/longhorn-manager"];
    "metallb": ["metallb"], ["metallb/metallb/"], ["metallb/controller"];
    "metrics-server": ["metrics-server"], ["metrics-server/"], ["metrics-server/metrics-server"];
    "nginx-gateway-fabric": ["nginx-gateway-fabric"], ["nginx-gateway-fabric"], [];
    "postgres-operator": ["postgres-operator"], ["zalando/postgres-operator/"], ["acid/postgres-operator"];
    "prometheus-operator": [], ["prometheus-operator/prometheus-operator/"], ["prometheus-operator/prometheus-operator"];
    "rabbitmq-cluster-operator": ["rabbitmq-cluster-operator"], ["rabbitmq/cluster-operator"], ["rabbitmqoperator/cluster-operator"];
    "redis-operator": ["redis-operator"], [], ["opstree/redis-operator"];
    "reloader": ["reloader"], ["stakater/reloader/"], ["stakater/reloader"];
    "rook": ["rook-ceph"], ["rook/rook/"], ["rook/ceph"];
    "sealed-secrets": ["sealed-secrets"], ["bitnami-labs/sealed-secrets/"], ["bitnami/sealed-secrets-controller"];
    "secrets-store-csi-driver": ["secrets-store-csi-driver"], ["secrets-store-csi-driver"], [];
    "strimzi": ["strimzi-kafka-operator"], ["strimzi.io/", "strimzi-kafka-operator/"], ["strimzi/operator"];
    "traefik": ["traefik"], ["traefik/traefik/"], ["library/traefik", "traefik"];
    "vault": ["vault"], [], [];
    "velero": ["velero"], [], ["velero/velero"];
    "vertical-pod-autoscaler": ["vertical-pod-autoscaler"], [], [];
}

impl Component {
    /// The component of a chart: a name, `repository/name`, or an address that ends in the name.
    pub fn of_chart(chart: &str) -> Option<&'static Self> {
        let name = chart.trim_end_matches('/').rsplit('/').next().unwrap_or(chart);
        let name = name.strip_suffix(".tgz").unwrap_or(name);
        ALL.iter().find(|known| known.charts.iter().any(|chart| is_chart(name, chart)))
    }

    /// The component that an address of manifests installs.
    pub fn of_address(address: &str) -> Option<&'static Self> {
        let address = address.to_lowercase();
        ALL.iter().find(|known| known.addresses.iter().any(|part| address.contains(part)))
    }

    /// The component that runs an image.
    pub fn of_image(image: &str) -> Option<&'static Self> {
        let image = image.split('@').next().unwrap_or(image);
        let name = match image.rsplit_once(':') {
            Some((name, tag)) if !tag.contains('/') => name,
            _ => image,
        };
        let is = |repository: &str| {
            name == repository || name.strip_suffix(repository).is_some_and(|rest| rest.ends_with('/'))
        };
        ALL.iter().find(|known| known.images.iter().any(|repository| is(repository)))
    }
}

/// Whether a name is a chart's, with or without its version: `calico`, `calico-v3.27.0`.
fn is_chart(name: &str, chart: &str) -> bool {
    let Some(rest) = name.strip_prefix(chart) else { return false };
    let version = rest.strip_prefix('-').map(|rest| rest.trim_start_matches('v'));
    rest.is_empty() || version.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::Component;

    #[test]
    fn components_are_known_in_every_form() {
        let name = |component: Option<&'static Component>| component.map(|it| it.name);
        assert_eq!(name(Component::of_chart("projectcalico/tigera-operator")), Some("calico"));
        assert_eq!(name(Component::of_chart("charts/cilium-1.15.1.tgz")), Some("cilium"));
        assert_eq!(name(Component::of_chart("cilium-monitor")), None);
        let url = "https://raw.githubusercontent.com/projectcalico/calico/v3.26.1/manifests/calico.yaml";
        assert_eq!(name(Component::of_address(url)), Some("calico"));
        assert_eq!(name(Component::of_image("quay.io/calico/node:v3.26.1")), Some("calico"));
        assert_eq!(name(Component::of_image("example.com:5000/shop")), None);
    }
}
