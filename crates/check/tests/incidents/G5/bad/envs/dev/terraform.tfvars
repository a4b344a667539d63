vpc_id = "vpc-0e6291cc7ab04d853"
