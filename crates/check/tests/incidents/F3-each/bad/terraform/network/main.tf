resource "aws_security_group" "control_plane" {
  name   = "control-plane"
  vpc_id = var.vpc_id
}
resource "aws_security_group" "workers" {
  name   = "workers"
  vpc_id = var.vpc_id
}
variable "vpc_id" {}
locals {
  node_ports = { kubelet = 10250, bgp = 179 }
}
resource "aws_vpc_security_group_ingress_rule" "cp_api" {
  security_group_id            = aws_security_group.control_plane.id
  referenced_security_group_id = aws_security_group.workers.id
  ip_protocol = "tcp"
  from_port   = 6443
  to_port     = 6443
}
resource "aws_vpc_security_group_ingress_rule" "workers_from_cp" {
  for_each = local.node_ports
  security_group_id            = aws_security_group.workers.id
  referenced_security_group_id = aws_security_group.control_plane.id
  ip_protocol = "tcp"
  from_port   = each.value
  to_port     = each.value
}
resource "aws_vpc_security_group_ingress_rule" "cp_from_workers" {
  for_each = local.node_ports
  security_group_id            = aws_security_group.control_plane.id
  referenced_security_group_id = aws_security_group.workers.id
  ip_protocol = "tcp"
  from_port   = each.value
  to_port     = each.value
}
resource "aws_instance" "master" {
  ami = "ami-0a1b2c3d4e5f60718"
  instance_type = "t3.large"
  vpc_security_group_ids = [aws_security_group.control_plane.id]
}
resource "aws_instance" "worker" {
  count = 3
  ami = "ami-0a1b2c3d4e5f60718"
  instance_type = "t3.large"
  vpc_security_group_ids = [aws_security_group.workers.id]
}
