variable "vpc_cidr" {
  type = string
}
