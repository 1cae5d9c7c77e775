#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# userspace/demo/train_ddp.py as it is started, by two ranks and without a job: by
# Gloo.  test_torch.py has what it does with one.
#
# usage: test_script.sh DIGITS

digits=$1
script=$(dirname "$0")/../../userspace/demo/train_ddp.py
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
export MASTER_ADDR=127.0.0.1 MASTER_PORT=29517 GLOO_SOCKET_IFNAME=lo
export PYTHONDONTWRITEBYTECODE=1

# rank NUMBER
rank() {
	timeout 300 "$script" --rank "$1" --workers 2 --data "$digits" --epochs 1 \
		>"$out/$1"
}

echo 1..2
rank 1 &
if rank 0 && wait $!; then echo "ok 1 both ranks end"; else
	echo "not ok 1 both ranks end"
fi
sed 's/^/# /' "$out"/*
accuracies=$(grep -ho '"accuracy": 0\.[0-9]*' "$out"/* | sort | uniq -c)
if [[ $accuracies =~ ^\ *2\ [^$'\n']*$ ]]; then
	echo "ok 2 both have the same model"
else
	echo "not ok 2 both have the same model"
fi
