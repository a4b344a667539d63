#!/bin/sh
set -eu
helm upgrade --install policy policy-server --repo https://charts.example.com --namespace policy --create-namespace
kubectl -n policy-system rollout status deployment/policy-server --timeout=120s
kubectl apply -k overlays/prod
kubectl -n shop rollout status deployment/shop-web --timeout=120s
