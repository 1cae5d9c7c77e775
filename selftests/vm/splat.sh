#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Does a kernel log hold anything that a sound kernel does not say?
#
# usage: splat.sh [FILE]		reads standard input without FILE
#
# Prints each finding with the lines that follow it. Exit status: 0 clean,
# 1 splat found, 2 the log could not be read.

set -u

# One pattern per line (extended, case matters). The kernel's own wording.
patterns='
WARNING: 
WARNING!
\bBUG: 
\bBUG at 
kernel BUG
\bOops\b
Kernel panic
Internal error:
general protection fault
double fault:
stack segment fault
divide error: 
invalid opcode: 
unable to handle
UBSAN: 
KASAN: 
KCSAN: 
KFENCE: 
KMSAN: 
kmemleak: [0-9]+ new suspected
possible circular locking
possible recursive locking
inconsistent lock state
INFO: task .* blocked for more than
INFO: rcu.*(stall|detected)
rcu.*self-detected stall
rcu.*detected .*stalls
suspicious RCU usage
suspicious rcu_dereference
\bsuspicious\b.*(usage|lock)
bad unlock balance
held lock freed
lock held when returning
sleeping function called from invalid context
scheduling while atomic
soft lockup
hard LOCKUP
watchdog: .*stuck
unregister_netdevice: waiting
refcount_t: 
list_(add|del) corruption
Bad page (state|map)
Bad rss-counter
page allocation failure
slab .*(corruption|overwritten)
Objects remaining in
\bunreferenced object 0x
double free
DEBUG_LOCKS_WARN_ON
NETDEV WATCHDOG
ODEBUG: 
netlink: .*attributes? (leftover|invalid)
kernel stack overflow
stack guard page was hit
\[#[0-9]+\] (PREEMPT|SMP|NOPTI)
Call Trace:
---\[ end trace
'

# Races that the kernel means to have, whoever is below it: the clock that a program
# of BPF asks, of which it keeps two copies and looks again afterwards; and the flag
# of a sleeping poll(2), which has barriers on both sides (fs/select.c).
meant='data-race in (ktime_get_mono_fast_ns / timekeeping_update'
meant+='|poll_schedule_timeout[.a-z0-9]* / pollwake)$'

# A data race whose two stacks are the kernel's alone is the kernel's, and so is one
# of an interrupt, whatever it has interrupted: what is below its entry. Only the
# title of such a report is left out: what another CPU may have said meanwhile
# is not. Reports stand between two lines of "=".
own_races() {
	awk -v meant="$meant" '
	function flush(	i)
	{
		for (i = 1; i <= n; i++)
			if (own && !theirs || line[i] !~ /BUG: KCSAN: /)
				print line[i]
		n = 0
	}
	/====================$/ && !inside {
		inside = 1
		own = theirs = below = 0
		line[++n] = $0
		next
	}
	inside {
		line[++n] = $0
		if (/ to 0x[0-9a-f]+ of [0-9]+ bytes by /)
			below = 0
		own = own || !below && /\[atp(_planted)?\]/
		below = below || / asm_(sysvec_|common_interrupt)/
		theirs = theirs || $0 ~ meant
		if (/====================$/) {
			inside = 0
			flush()
		}
		next
	}
	{ print }
	END { own = 1; theirs = 0; flush() }'
}

log=$(cat -- "${1:--}") || exit 2
log=$(own_races <<<"$log")

list=$(mktemp) || exit 2
trap 'rm -f "$list"' EXIT
sed '/^$/d' <<<"$patterns" >"$list"

if grep -E -f "$list" -A 40 -n <<<"$log"; then
	exit 1
fi
exit 0
