#!/bin/sh
set -eu
kubectl apply -f bootstrap/root.yaml
helm upgrade --install argocd argo-cd --repo https://argoproj.github.io/argo-helm --namespace argocd
