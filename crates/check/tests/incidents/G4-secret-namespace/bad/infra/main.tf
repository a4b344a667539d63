resource "kubernetes_secret" "db" {
  metadata {
    name = "db"
  }
}

resource "helm_release" "shop" {
  name      = "shop"
  chart     = "shop"
  namespace = "shop"
  set {
    name  = "existingSecret"
    value = kubernetes_secret.db.metadata[0].name
  }
}
