variable "subnet_ids" {
  type = list(string)
}

variable "size" {
  default = 3
}

output "node_ids" {
  value = var.subnet_ids
}
