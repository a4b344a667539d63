resource "aws_vpc" "main" {
  cidr_block = "10.0.0.0/16"
}

resource "aws_security_group" "control" {
  name   = "control"
  vpc_id = aws_vpc.main.id

  ingress {
    from_port   = 6443
    to_port     = 6443
    protocol    = "tcp"
    cidr_blocks = ["10.0.0.0/16"]
  }

  dynamic "ingress" {
    for_each = local.ports
    content {
      from_port       = ingress.value
      to_port         = ingress.value
      protocol        = "udp"
      security_groups = [aws_security_group.worker.id]
    }
  }
}

resource "aws_security_group" "worker" {
  name   = "worker"
  vpc_id = aws_vpc.main.id

  ingress {
    from_port   = 10250
    to_port     = 10250
    protocol    = "tcp"
    cidr_blocks = ["10.0.0.0/16"]
  }
}

# what a list holds may be any port
locals {
  ports = [8472]
}

resource "aws_security_group_rule" "pods" {
  type                     = "ingress"
  security_group_id        = aws_security_group.worker.id
  source_security_group_id = aws_security_group.control.id
  protocol                 = "udp"
  from_port                = 8472
  to_port                  = 8472
}

resource "aws_instance" "control" {
  ami                    = "ami-0abc"
  instance_type          = "t3.medium"
  vpc_security_group_ids = [aws_security_group.control.id]
}

resource "aws_instance" "worker" {
  count                  = 2
  ami                    = "ami-0abc"
  instance_type          = "t3.medium"
  vpc_security_group_ids = [aws_security_group.worker.id]
}
