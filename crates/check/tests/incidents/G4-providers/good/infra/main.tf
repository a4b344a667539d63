resource "random_pet" "web" {}
