resource "aws_instance" "node" {
  key_name = var.key_name
}
