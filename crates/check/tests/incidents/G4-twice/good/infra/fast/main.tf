module "lab" {
  source = "./lab"
}

locals {
  count = 1
}
