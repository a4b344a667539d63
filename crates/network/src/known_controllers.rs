//! Controllers that are known by their charts and images, with what they need of the network.

/// A controller that is known by its chart and image.
#[derive(Debug, PartialEq, Eq)]
pub struct Controller {
    /// Its name, which is also its chart's.
    pub name: &'static str,
    /// What its image's repository ends in.
    pub image: &'static str,
    /// The `app.kubernetes.io/name` of its pods.
    pub label: &'static str,
    /// Whether it calls the API of the cloud, and asks the node's metadata service for credentials.
    pub calls_cloud: bool,
}

macro_rules! controllers {
    ($($name:literal, $image:literal, $label:literal, $cloud:literal;)*) => {
        const ALL: &[Controller] = &[$(Controller { name: $name, image: $image, label: $label, calls_cloud: $cloud }),*];
    };
}

controllers! {
    "aws-load-balancer-controller", "aws-load-balancer-controller", "aws-load-balancer-controller", true;
    "aws-ebs-csi-driver", "aws-ebs-csi-driver", "aws-ebs-csi-driver", true;
    "cluster-autoscaler", "cluster-autoscaler", "aws-cluster-autoscaler", true;
    "external-dns", "external-dns", "external-dns", true;
    "karpenter", "karpenter/controller", "karpenter", true;
    "cert-manager", "cert-manager-controller", "cert-manager", false;
    "external-secrets", "external-secrets", "external-secrets", false;
    "ingress-nginx", "ingress-nginx/controller", "ingress-nginx", false;
    "kyverno", "kyverno/kyverno", "kyverno", false;
    "metrics-server", "metrics-server", "metrics-server", false;
    "sealed-secrets", "sealed-secrets-controller", "sealed-secrets", false;
    "reloader", "stakater/reloader", "reloader", false;
    "keda", "kedacore/keda", "keda-operator", false;
    "argocd-application-controller", "argoproj/argocd", "argocd-application-controller", false;
}

/// A database that asks the API server who leads.
pub(crate) const INSTANCE: Controller =
    Controller { name: "instance of a database", image: "", label: "", calls_cloud: false };

impl Controller {
    /// The controller that an image is.
    pub fn of_image(image: &str) -> Option<&'static Self> {
        let image = image.split('@').next().unwrap_or(image);
        let name = match image.rsplit_once(':') {
            Some((name, tag)) if !tag.contains('/') => name,
            _ => image,
        };
        // One image runs all parts of Argo CD, and not all of them are the controller.
        let known = ALL.iter().filter(|known| known.image != "argoproj/argocd");
        known.into_iter().find(|known| {
            name.strip_suffix(known.image).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
        })
    }

    /// The controller that a chart installs.
    pub fn of_chart(chart: &str) -> Option<&'static Self> {
        ALL.iter().find(|known| known.name == chart)
    }
}
