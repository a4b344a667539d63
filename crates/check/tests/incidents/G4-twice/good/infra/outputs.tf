output "node_ip" {
  value = example_machine.node.address
}

output "node_name" {
  value = example_machine.node.name
}
