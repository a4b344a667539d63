variable "vpc_id" {
  type = object({ id = string })
}

output "id" {
  value = var.vpc_id.id
}
