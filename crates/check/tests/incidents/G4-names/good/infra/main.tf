locals {
  zones = ["a", "b"]
}

resource "aws_vpc" "main" {
  cidr_block = var.vpc_cidr
}

resource "aws_subnet" "node" {
  for_each   = toset(local.zones)
  vpc_id     = aws_vpc.main.id
  cidr_block = join(",", [for local_zone in local.zones : local_zone])
}

module "nodes" {
  source  = "../modules/nodes"
  count   = 2
  subnet_ids = [for node in aws_subnet.node : node.id]
}

module "names" {
  source = "../modules/names"
}

output "nodes" {
  value = module.nodes[0].node_ids
}

# what is tried may be missing
output "size" {
  value = try(module.nodes.size, null)
}
