locals {
  zones = ["a", "b"]
}

resource "aws_vpc" "main" {
  cidr_block = var.cidr
}

resource "aws_subnet" "node" {
  for_each   = toset(local.zone)
  vpc_id     = aws_vpc.this.id
  cidr_block = join(",", [for local_zone in local.zones : local_zone])
}

module "nodes" {
  source  = "../modules/nodes"
  count   = 2
  subnets = [for node in aws_subnet.node : node.id]
}

module "names" {
  source = "../modules/dns-names"
}

output "nodes" {
  value = module.nodes[0].ids
}
