#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The fuzzer in the virtual machine can fail: the module built from a copy of the
# sources with one fault in it, on a kernel that sees where that leads.
#
# usage: vm_planted.sh BED		BED: kasan or kcsan

cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
# shellcheck source=../vm/tap.sh
. selftests/vm/tap.sh

bed=$1
dir=$PWD/build/fuzz/planted/vm-$bed
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# plant FILE SED
plant() {
	rm -rf "$dir"
	mkdir -p "$dir"
	cp -r Kbuild kernel uapi "$dir"
	sed -i "$2" "$dir/$1"
	if cmp -s "$1" "$dir/$1"; then
		echo "$1: there is nothing to plant it into"
		return 1
	fi
	make -s -j2 -C "build/kernels/$bed/kdir" M="$dir" KCFLAGS=-Werror \
		CONFIG_DEBUG_INFO_BTF_MODULES= UBSAN_SANITIZE=y modules
}

# In a function of the module; with the first report the machine goes down. Where
# modprobe finds it, the module is another one in that machine alone.
found() {
	local status

	# shellcheck disable=SC2016 # the machine's
	selftests/vm/run-vm.sh --kernel "$bed" --timeout 900 --out "$tmp/log" \
		--append kasan.fault=panic -- sh -c \
		'cp "$0" "/lib/modules/$(uname -r)/updates/" && exec "$@"' \
		"$dir/atp.ko" selftests/fuzz/vm_test.py 60 1 >"$tmp/said" 2>&1
	status=$?
	if [ "$status" -ne 125 ] ||
	   ! grep 'BUG: KASAN: .* in atp_' "$tmp/log"; then
		tail -n 40 "$tmp/said"
		echo "status $status, not 125"
		return 1
	fi
}

planned=1
[ "$bed" != kasan ] || planned=2
# KCSAN takes samples, so what it finds of one race is chance: there it is only built.
plan "$planned"
check "planted: a socket that is gone stays in its job's table" plant \
	kernel/worker_run.c '/^void atp_sk_stop/,/^}/ s/if (as->attached)/if (0)/'
[ "$bed" != kasan ] || check "packets find it" found
finish
