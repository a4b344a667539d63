module "eks" {
  source  = "terraform-aws-modules/eks/aws"
  version = "~> 20.0"

  node_security_group_additional_rules = {
    istio = {
      protocol                      = "tcp"
      from_port                     = 15017
      to_port                       = 15017
      source_cluster_security_group = true
    }
  }
}
