variable "zone" {
  type    = string
  default = "${var.region}-a"
}

variable "region" {
  type    = string
  default = "eu-1"
}
