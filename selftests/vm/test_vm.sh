#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Does run-vm.sh bring back what happened, above all what went wrong?

cd "$(dirname "$0")" || exit 1
# shellcheck source=tap.sh
. ./tap.sh

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# vm STATUS OPTION... -- COMMAND...: the status must be this one
vm() {
	local want=$1 got=0

	shift
	./run-vm.sh --timeout 120 "$@" >"$tmp/out" 2>"$tmp/err" || got=$?
	[ "$got" -eq "$want" ] || {
		echo "status $got, not $want"
		tail -n 20 "$tmp/out" "$tmp/err"
		return 1
	}
}

plan 12
# shellcheck disable=SC2016 # for the guest's shell
check "the command's status" vm 42 --out "$tmp/log" -- bash -c '
	echo "to stdout $0"; echo "to stderr" >&2; uname -r; exit 42' 'a  b'
check "its output" grep -qx 'to stdout a  b' "$tmp/out"
check "its error output" grep -qx 'to stderr' "$tmp/out"
check "the kernel asked for" grep -q '^6\.1\.' "$tmp/out"
check "the kernel log is kept" grep -q 'Linux version 6.1' "$tmp/log"
# shellcheck disable=SC2016
check "files: writable here, gone afterwards, kept below /out" vm 0 -- bash -ec '
	touch vm-scratch /etc/vm-scratch
	echo hello >/out/vm-scratch
	modprobe veth
	ip netns add x
	ip link add v0 type veth peer v1 netns x
	test -d /sys/fs/bpf -a -d /sys/kernel/tracing/events
	test "$(nproc)" = 2'
check "... gone" [ ! -e ../../vm-scratch ]
check "... kept" grep -qx hello ../../build/vm-out/vm-scratch
check "a warning in the kernel log, with the other kernel" \
	vm 97 --kernel 6.12 -- bash -c \
	'echo "WARNING: CPU: 0 PID: 1 at test.c:1 test" >/dev/kmsg'
check "... is shown" grep -q 'SPLAT' "$tmp/err"
check "the death of the kernel" \
	vm 125 -- bash -c 'echo c >/proc/sysrq-trigger; sleep 60'
check "a timeout" vm 124 --timeout 15 -- sleep 600
rm -f ../../build/vm-out/vm-scratch
finish
