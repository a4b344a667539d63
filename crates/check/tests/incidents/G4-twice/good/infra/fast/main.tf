module "lab" {
  source = "example/lab/any"
}

locals {
  count = 1
}
