resource "example_node_pool" "workers" {
  name   = "workers"
  labels = { "example.com/pool" = "workers" }
}
