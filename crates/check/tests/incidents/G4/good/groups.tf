resource "aws_security_group" "control" {
  name = "control"
}

resource "aws_security_group" "node" {
  ingress {
    from_port       = 10250
    to_port         = 10250
    protocol        = "tcp"
    security_groups = [aws_security_group.control.id]
  }
}

resource "aws_security_group_rule" "control_from_node" {
  type                     = "ingress"
  from_port                = 6443
  to_port                  = 6443
  protocol                 = "tcp"
  security_group_id        = aws_security_group.control.id
  source_security_group_id = aws_security_group.node.id
}
