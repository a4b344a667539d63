module "lab" {
  source = "example/fast/any"
}

locals {
  count = 2
}
