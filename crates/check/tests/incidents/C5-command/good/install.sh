#!/bin/sh
set -eu
helm upgrade --install argocd argo-cd --repo https://argoproj.github.io/argo-helm --namespace argocd
kubectl apply -f bootstrap/root.yaml
