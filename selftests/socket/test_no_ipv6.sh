#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A kernel that has IPv6, but was told at boot to leave it off.
#
# usage: test_no_ipv6.sh KERNEL...

cd "$(dirname "$0")" || exit 1
# shellcheck source=../vm/tap.sh
. ../vm/tap.sh

plan $#
for kernel; do
	check "IPv6 is off, kernel $kernel" ../vm/run-vm.sh --kernel "$kernel" \
		--append ipv6.disable=1 -- selftests/socket/no_ipv6.py
done
finish
