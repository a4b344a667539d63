module "eks" {
  source  = "terraform-aws-modules/eks/aws"
  version = "~> 20.0"

  cluster_addons = {
    kube-proxy = { most_recent = true }
  }
}

# Only the roles; the charts are left to Argo CD.
module "addons" {
  source = "aws-ia/eks-blueprints-addons/aws"

  create_kubernetes_resources = false
  enable_metrics_server       = true
}
