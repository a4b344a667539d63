resource "aws_vpc" "main" {
  cidr_block = "10.0.0.0/16"
}

resource "aws_subnet" "nodes" {
  for_each          = { a = 0, b = 1 }
  vpc_id            = aws_vpc.main.id
  availability_zone = each.key
  cidr_block        = "10.0.${each.value}.0/24"
  depends_on        = [aws_vpc.main]
}

resource "kubernetes_namespace" "shop" {
  metadata {
    name = "shop"
  }
}

resource "kubernetes_manifest" "gate" {
  manifest = { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "gate", namespace = "shop" } }
}

resource "kubernetes_secret" "database" {
  metadata {
    name      = "database"
    namespace = kubernetes_namespace.shop.metadata[0].name
    labels    = { gate = kubernetes_manifest.gate.manifest.metadata.name, of = kubernetes_namespace.shop.metadata.0.name }
  }
}

# A module takes a resource as a whole, and an output gives it.
output "vpc" {
  value = aws_vpc.main
}

module "peers" {
  source = "../peers"
  vpc_id = aws_vpc.main
}
