resource "aws_security_group" "control" {
  ingress {
    from_port   = 6443
    to_port     = 6443
    protocol    = "tcp"
    cidr_blocks = ["0.0.0.0/0"]
  }
}

resource "aws_security_group" "worker" {
  name = "worker"
}

resource "aws_security_group_rule" "kubelet" {
  type                     = "ingress"
  from_port                = 10250
  to_port                  = 10250
  protocol                 = "tcp"
  security_group_id        = aws_security_group.worker.id
  source_security_group_id = aws_security_group.control.id
}

resource "aws_security_group_rule" "vxlan_to_worker" {
  type                     = "ingress"
  from_port                = 4789
  to_port                  = 4789
  protocol                 = "udp"
  security_group_id        = aws_security_group.worker.id
  source_security_group_id = aws_security_group.control.id
}

resource "aws_security_group_rule" "typha_to_worker" {
  type                     = "ingress"
  from_port                = 5473
  to_port                  = 5473
  protocol                 = "tcp"
  security_group_id        = aws_security_group.worker.id
  source_security_group_id = aws_security_group.control.id
}

resource "aws_vpc_security_group_ingress_rule" "control_from_worker" {
  ip_protocol                  = "-1"
  security_group_id            = aws_security_group.control.id
  referenced_security_group_id = aws_security_group.worker.id
}
