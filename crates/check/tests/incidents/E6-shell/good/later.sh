#!/bin/sh
kubectl patch deployment proxy --patch '{"spec":{"template":{"spec":{"containers":[{"name":"proxy","command":["sh","-c","sleep 5 && exec proxy"]}]}}}}'
