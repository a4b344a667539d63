resource "null_resource" "root" {
  triggers = {
    hash = filemd5("${path.module}/../../apps/root.yaml")
  }

  provisioner "local-exec" {
    command = "kubectl apply -f ${path.module}/../../apps/root.yaml"
  }
}
