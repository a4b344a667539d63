resource "helm_release" "argocd" {
  name       = "argocd"
  repository = "https://argoproj.github.io/argo-helm"
  chart      = "argo-cd"
  namespace  = "argocd"
}

resource "kubernetes_manifest" "root" {
  manifest   = yamldecode(file("${path.module}/root.yaml"))
  depends_on = [helm_release.argocd]
}
