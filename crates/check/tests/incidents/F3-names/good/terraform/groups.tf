resource "aws_security_group" "master" {
  name = "k8s-master"
  ingress {
    from_port       = 6443
    to_port         = 6443
    protocol        = "tcp"
    security_groups = [aws_security_group.worker.id]
  }
  ingress {
    from_port       = 179
    to_port         = 179
    protocol        = "tcp"
    security_groups = [aws_security_group.worker.id]
  }
  ingress {
    from_port       = 5473
    to_port         = 5473
    protocol        = "tcp"
    security_groups = [aws_security_group.worker.id]
  }
}

resource "aws_security_group" "worker" {
  name = "k8s-worker"
  ingress {
    from_port   = 0
    to_port     = 65535
    protocol    = "tcp"
    cidr_blocks = ["10.0.0.0/16"]
  }
}
