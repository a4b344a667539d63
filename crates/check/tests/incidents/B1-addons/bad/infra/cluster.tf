module "eks" {
  source  = "terraform-aws-modules/eks/aws"
  version = "~> 20.0"

  cluster_addons = {
    aws-ebs-csi-driver = { most_recent = true }
  }
}

module "addons" {
  source = "aws-ia/eks-blueprints-addons/aws"

  enable_metrics_server = true
  enable_cert_manager   = var.certificates
}

resource "aws_eks_addon" "dns" {
  cluster_name = module.eks.cluster_name
  addon_name   = "coredns"
}
