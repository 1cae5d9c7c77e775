#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# In the virtual machine: what the checkers of a debug kernel say only when
# they are asked. Prints nothing on a kernel without them, or without findings.

set -u

# A checker that has given up finds nothing.
lockdep() {
	local stats=/proc/lockdep_stats

	[ -e "$stats" ] || return 0
	grep -q 'debug_locks: *1$' "$stats" ||
		echo "BUG: lockdep is off: it reported something, or ran out of memory"
}

scan() {
	echo scan >/sys/kernel/debug/kmemleak
}

leaks() {
	[ -e /sys/kernel/debug/kmemleak ] || return 0
	# It reports nothing younger than five seconds, and nothing that has
	# changed since the scan before.
	if scan && sleep 6 && scan; then
		cat /sys/kernel/debug/kmemleak
	else
		echo "BUG: kmemleak is off: it ran out of memory"
	fi
}

lockdep
leaks
