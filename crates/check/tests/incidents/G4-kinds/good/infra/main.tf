resource "vault_mount" "shop" {
  path = "shop"
  type = "kv"
}

resource "scaleway_domain_record" "web" {
  name = "web"
}

resource "vault_policy" "reader" {
  for_each = { for vault_role in ["a", "b"] : vault_role => vault_role }
  name     = each.key
  policy   = vault_mount.shop.path
}

output "address" {
  value = scaleway_domain_record.web.name
}

output "names" {
  value = [for domain_record in [{ web = "x" }] : domain_record.web]
}
