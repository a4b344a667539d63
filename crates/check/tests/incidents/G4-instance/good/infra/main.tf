resource "aws_subnet" "public" {
  count      = 2
  cidr_block = "10.0.${count.index}.0/24"
}

resource "aws_route_table_association" "public" {
  count     = 2
  subnet_id = aws_subnet.public[count.index].id
}

output "subnets" {
  value = aws_subnet.public[*].id
}

output "all" {
  value = [for it in aws_subnet.public : it.id]
}
