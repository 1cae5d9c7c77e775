#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# In the virtual machine: does the kernel catch what is planted, and does
# splat.sh see it?
#
# usage: planted.sh MODULE BED		BED: kasan or kcsan

cd "$(dirname "$0")" || exit 1
# shellcheck source=../vm/tap.sh
. ../vm/tap.sh

module=$1
bed=$2

# since LINE: what the kernel has logged after that many lines, and what a
# checker has said when asked
said=$(mktemp)
since() {
	dmesg | tail -n "+$(($1 + 1))"
	cat "$said"
}

plant() {
	echo "$1" >/sys/module/atp_planted/parameters/plant
}

# found LINE WORDS: splat.sh shows both the kind and the function at fault
found() {
	local splat

	splat=$(../vm/splat.sh <(since "$1"))
	if [ $? -ne 1 ] || ! grep -q -E "$2" <<<"$splat" ||
	   ! grep -q planted_ <<<"$splat"; then
		since "$1"
		return 1
	fi
}

# catches NAME WORDS: the report comes with the bug
catches() {
	local before

	before=$(dmesg | wc -l)
	plant "$1"
	check "$1: $2" found "$before" "$2"
}

# catches_later NAME WORDS COMMAND...: the report comes when the checker gets
# to it; until then COMMAND is run again
catches_later() {
	local name=$1 words=$2 before end=$((SECONDS + 240))

	shift 2
	before=$(dmesg | wc -l)
	plant "$name"
	until found "$before" "$words" >/dev/null || [ "$SECONDS" -gt "$end" ]
	do
		"$@" >"$said"
	done
	check "$name: $words" found "$before" "$words"
}

quiet() {
	insmod "$module"
	../vm/splat.sh <(since 0)
}

case $bed in
kasan)
	plan 10
	check "nothing is said before" quiet
	# A report of KASAN turns lockdep off.
	catches rcu 'WARNING: suspicious RCU usage'
	catches sleep 'BUG: sleeping function called from invalid context'
	catches lock-order 'WARNING: possible circular locking dependency'
	catches free-active 'ODEBUG: free active'
	catches shift 'UBSAN: shift-out-of-bounds'
	catches out-of-bounds 'BUG: KASAN: slab-out-of-bounds'
	catches vmalloc 'BUG: KASAN: vmalloc-out-of-bounds'
	catches use-after-free 'BUG: KASAN: (slab-)?use-after-free'
	catches_later leak 'unreferenced object' ../vm/checkers.sh
	;;
kcsan)
	plan 2
	check "nothing is said before" quiet
	catches_later race 'BUG: KCSAN: data-race' sleep 1
	;;
*)
	exit 1
	;;
esac
rmmod atp_planted
finish
