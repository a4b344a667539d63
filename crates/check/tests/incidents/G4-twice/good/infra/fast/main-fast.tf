module "lab" {
  source = "./fast"
}

locals {
  count = 2
}
