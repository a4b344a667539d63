moved {
  from = aws_vpc.old
  to   = aws_vpc.main
}
