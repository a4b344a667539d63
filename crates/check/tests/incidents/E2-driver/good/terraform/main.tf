resource "aws_eks_cluster" "shop" {
  name     = "shop"
  role_arn = var.role
}

resource "aws_eks_addon" "ebs" {
  cluster_name = aws_eks_cluster.shop.name
  addon_name   = "aws-ebs-csi-driver"
}

variable "role" {
  type = string
}
