#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Write the C files that follow from the netlink specification.
#
# usage: netlink-gen.sh [DIR]     DIR: instead of the source tree

set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
out=${1:-$top}

gen() {
	mkdir -p "$(dirname "$out/$2")"
	python3 "$here/nlgen.py" --mode "$1" -o "$out/$2" \
		--spec "$top/Documentation/netlink/specs/atp.yaml"
}

gen uapi		uapi/linux/atp_netlink.h
gen kernel-header	kernel/netlink_gen.h
gen kernel-source	kernel/netlink_gen.c
gen user-header		userspace/atp/netlink_gen.h
gen user-source		userspace/atp/netlink_gen.c
