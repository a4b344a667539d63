output "of_a" {
  value = "a"
}

output "of_b" {
  value = "b"
}

output "of_c" {
  value = "c"
}

output "of_d" {
  value = "d"
}

output "of_e" {
  value = "e"
}

output "large" {
  value = 1
}
