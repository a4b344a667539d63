resource "aws_eks_cluster" "main" {
  name = "main"
}
