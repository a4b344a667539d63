# Linked into several modules.
output "names" {
  value = module.names.zone
}
