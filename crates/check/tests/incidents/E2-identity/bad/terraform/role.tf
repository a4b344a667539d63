resource "aws_iam_role" "mail" {
  name = "mail"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRoleWithWebIdentity"
      Principal = { Federated = "arn:aws:iam::123456789012:oidc-provider/oidc.example.com" }
      Condition = { StringEquals = { "oidc.example.com:sub" = "system:serviceaccount:store:mail" } }
    }]
  })
}
