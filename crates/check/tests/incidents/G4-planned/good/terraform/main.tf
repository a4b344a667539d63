resource "helm_release" "argocd" {
  name       = "argocd"
  repository = "https://argoproj.github.io/argo-helm"
  chart      = "argo-cd"
  namespace  = "argocd"
}

resource "helm_release" "root" {
  name       = "root"
  chart      = "${path.module}/../charts/root"
  namespace  = "argocd"
  depends_on = [helm_release.argocd]
}
