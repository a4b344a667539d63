module "eks" {
  source  = "terraform-aws-modules/eks/aws"
  version = "~> 20.0"
}
