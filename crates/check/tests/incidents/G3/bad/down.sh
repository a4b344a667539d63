#!/bin/sh
terraform destroy
