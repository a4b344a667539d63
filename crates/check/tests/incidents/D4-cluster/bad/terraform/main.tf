module "eks" {
  source          = "terraform-aws-modules/eks/aws"
  cluster_name    = "shop-prod"
  cluster_version = "1.31"
}
