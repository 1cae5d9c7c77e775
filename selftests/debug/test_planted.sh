#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Is what is planted in a debug kernel caught, and by run-vm.sh, too?
#
# usage: test_planted.sh BED

cd "$(dirname "$0")" || exit 1

bed=$1
top=$(cd ../.. && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# What the bed sees of the module, it sees by calls that the compiler put there.
case $bed in
kasan) calls='__asan_report_(load|store)' ;;
kcsan) calls='__tsan_(read|write)' ;;
esac
nm -u "$top/build/kmod/$bed/atp.ko" | grep -q -E "$calls" || {
	echo "# atp.ko has none of $calls"
	exit 1
}

../vm/run-vm.sh --kernel "$bed" --timeout 800 --out "$tmp/log" -- \
	"$PWD/planted.sh" "$top/build/selftests/debug/$bed/atp_planted.ko" "$bed" \
	2>"$tmp/err"
status=$?
sed 's/^/# /' "$tmp/err"
# All was caught, and for that the machine's log is not clean.
[ "$status" -eq 97 ] || {
	echo "# status $status, not 97"
	exit 1
}
