region = "eu-west-1"
public_subnets = [
  "subnet-08c49a1dd788790fa",
  "subnet-0d1f7e93b6a85c24e",
]
