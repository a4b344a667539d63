output "zone" {
  value = "example.com"
}
