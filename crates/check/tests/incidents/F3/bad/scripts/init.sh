#!/bin/sh
kubeadm init --pod-network-cidr 192.168.0.0/16
kubectl create -f https://raw.githubusercontent.com/projectcalico/calico/v3.27.3/manifests/tigera-operator.yaml
