resource "helm_release" "metrics_server" {
  name       = "metrics-server"
  namespace  = "kube-system"
  repository = "https://charts.example.com"
  chart      = "metrics-server"
}
