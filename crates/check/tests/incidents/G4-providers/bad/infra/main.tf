terraform {
  required_providers {
    random = { source = "hashicorp/random" }
  }
}

resource "random_pet" "web" {}
