variable "user" {
  type = string
}

resource "example_machine" "one" {
  name = "one-${var.user}"
  user = var.user
}
