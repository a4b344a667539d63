#!/bin/sh
kubectl delete ingress --all -A --wait
terraform destroy
