resource "aws_eks_cluster" "shop" {
  name     = "shop"
  role_arn = var.role
}

variable "role" {
  type = string
}
