region = "eu-central-1"
vpc_id = "vpc-0d17bbe41f2967a05"
