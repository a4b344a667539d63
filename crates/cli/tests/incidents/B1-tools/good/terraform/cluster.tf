resource "helm_release" "argocd" {
  name       = "argocd"
  namespace  = "argocd"
  repository = "https://charts.example.com"
  chart      = "argo-cd"
}
