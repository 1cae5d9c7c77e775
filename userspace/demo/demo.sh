#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Train a network on real images over a rack in a virtual machine with Debian's
# stock 6.1 kernel.  "make demo" builds what is needed and comes here.
#
# SERVER=1 lets an application on the PS host take the steps, and compares.
# Leaves build/demo.json, and build/demo.pcap for Wireshark.  Exit status 0: all
# that it promises was so.

set -euo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
demo=$top/userspace/demo
work=$top/build/demo
out=$top/build/vm-out/demo
kernel=6.1
optimiser=worker
[ -z "${SERVER:-}" ] || optimiser="ps"

say() {
	printf '\n== %s\n' "$*"
}

die() {
	echo "demo: $*" >&2
	exit 1
}

[ -e "$top/build/kmod/$kernel/atp.ko" ] || die "no module: run make demo"
if [ ! -x "$top/build/iproute2/ip" ]; then
	say "building Debian's ip(8) with the object atp"
	make --no-print-directory -C "$top/userspace" ip-atp
fi

began=$SECONDS
rm -rf "$work" "$out"
mkdir -p "$work" "$out"
rm -f "$top"/build/demo.{json,pcap}

say "the data"
/usr/bin/python3 "$demo/digits.py" "$work/digits.npz"

say "a single process on the same batches, as the oracle"
/usr/bin/python3 "$demo/train.py" --alone --label alone \
	--data "$work/digits.npz" --result "$out/alone.json" |
	tail -n 1

say "a virtual machine with Debian's stock $kernel kernel"
status=0
"$top/selftests/vm/run-vm.sh" --kernel $kernel --timeout 1800 \
	--out "$top/build/vm-logs/demo.log" -- \
	userspace/demo/demo-guest.sh "$work/digits.npz" $optimiser || status=$?
case $status in
0) ;;
97) die "the kernel's log holds a warning: see build/vm-logs/demo.log" ;;
124) die "it took too long: see build/vm-logs/demo.log" ;;
*) die "it failed in the virtual machine: see build/vm-logs/demo.log" ;;
esac

cp "$out/demo.pcap" "$top/build/demo.pcap"

say "what was measured"
/usr/bin/python3 "$demo/report.py" "$out" "$top/build/demo.json" \
	$((SECONDS - began))
