variable "zone" {
  type    = string
  default = null
}

variable "region" {
  type    = string
  default = "eu-1"
}

locals {
  first_zone = coalesce(var.zone, "${var.region}-a")
}
