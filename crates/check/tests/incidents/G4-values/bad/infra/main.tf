resource "aws_vpc" "main" {
  cidr_block = "10.0.0.0/16"
}

resource "aws_subnet" "nodes" {
  for_each   = toset(["a", "b"])
  vpc_id     = aws_vpc.main
  cidr_block = "10.0.${each.index}.0/24"
}

resource "kubernetes_namespace" "shop" {
  metadata {
    name = "shop"
  }
}

resource "kubernetes_secret" "database" {
  metadata {
    name      = "database"
    namespace = kubernetes_namespace.shop.metadata.name
  }
}
