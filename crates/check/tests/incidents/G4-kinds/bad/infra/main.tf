resource "vault_mount" "shop" {
  path = "shop"
  type = "kv"
}

resource "scaleway_domain_record" "web" {
  name = "web"
}

resource "vault_policy" "reader" {
  name   = "reader"
  policy = vault_mount.shops.path
}

output "address" {
  value = caleway_domain_record.web.name
}
