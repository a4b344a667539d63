locals {
  zone = "a"
}

resource "example_machine" "node" {
  name     = "node"
  zone     = local.zone
  settings = templatefile("${path.module}/files/setting.yaml.tftpl", { zone = local.zone })
  hash     = fileexists("${path.module}/files/extra.yaml") ? filemd5("${path.module}/files/extra.yaml") : ""
}

# Added with the second zone.
output "node_ip" {
  value = example_machine.node.address
}
