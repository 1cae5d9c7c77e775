#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Does splat.sh find what it must, and nothing in a sound log?

cd "$(dirname "$0")" || exit 1
# shellcheck source=tap.sh
. ./tap.sh

bad=(
	'WARNING: CPU: 1 PID: 77 at net/core/dev.c:10 f+0x1/0x2 [atp]'
	'BUG: kernel NULL pointer dereference, address: 0000000000000008'
	'BUG: KASAN: use-after-free in f+0x1/0x2 [atp]'
	'BUG: sleeping function called from invalid context at mm/slab.h:1'
	'BUG: scheduling while atomic: atp/12/0x00000002'
	'BUG: workqueue lockup - pool cpus=0 node=0 flags=0x0 nice=0'
	'Oops: 0000 [#1] PREEMPT SMP NOPTI'
	'int3: 0000 [#1] PREEMPT SMP NOPTI'
	'general protection fault, probably for non-canonical address 0x1: 0000'
	'kernel BUG at net/core/skbuff.c:100!'
	'WARNING: possible circular locking dependency detected'
	'WARNING: suspicious RCU usage'
	'kernel/x.c:12 suspicious rcu_dereference_check() usage!'
	'rcu: INFO: rcu_preempt self-detected stall on CPU'
	'rcu: INFO: rcu_sched detected stalls on CPUs/tasks:'
	'INFO: task atp:77 blocked for more than 120 seconds.'
	'watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [x:1]'
	'unregister_netdevice: waiting for veth0 to become free. Usage count = 2'
	'refcount_t: underflow; use-after-free.'
	'list_del corruption. next->prev should be 1, but was 2'
	'kmemleak: 2 new suspected memory leaks (see /sys/kernel/debug/kmemleak)'
	'unreferenced object 0xffff888004d9a800 (size 128):'
	'UBSAN: array-index-out-of-bounds in a.c:1:2'
	'BUG: KCSAN: data-race in a / b'
	'Call Trace:'
	'Kernel panic - not syncing: Fatal exception'
	'python3: page allocation failure: order:4, mode:0x40cc0'
	'BUG: lockdep is off: it reported something, or ran out of memory'
	'ODEBUG: free active (active state 0) object type: timer_list hint: f'
	'NETDEV WATCHDOG: eth0 (x): transmit queue 0 timed out'
)
good=(
	'Linux version 6.1.0 (debian-kernel@lists.debian.org)'
	'atp: loading out-of-tree module taints kernel.'
	'atp: module verification failed: signature and/or required key missing'
	'x86/mm: Checked W+X mappings: passed, no W+X pages found.'
	'RAS: Correctable Errors collector initialized.'
	'PM: RTC time: 03:31:44, debugging of buggy hardware off'
	'rcu: Preemptible hierarchical RCU implementation.'
	'rcu: 	RCU CPU stall warnings timeout set to 21 (rcu_cpu_stall_timeout).'
	'NMI watchdog: Enabled. Permanently consumes one hw-PMU counter.'
	'NET: Registered PF_ASH protocol family'
)

# race FRAME [LINE [FUNCTIONS]]: a report of KCSAN, with a line of another CPU's
# inside
race() {
	local bar='=================================================================='

	printf '[    3.0] %s\n' "$bar" \
		"BUG: KCSAN: data-race in ${3:-read_it / write_it}" '' \
		'write to 0xffff888000000000 of 4 bytes by task 7 on cpu 0:' \
		' write_it+0x1/0x2' ' do_syscall_64+0x1/0x2' "${2:-}" '' \
		'read to 0xffff888000000000 of 4 bytes by task 8 on cpu 1:' \
		" read_it+0x1/0x2$1" ' do_syscall_64+0x1/0x2' '' "$bar"
}

plan $((${#bad[@]} + 13))
for line in "${bad[@]}"; do
	fails "found: $line" \
		./splat.sh <(printf '[    1.0] fine\n[    2.0] %s\n' "$line")
done
check "nothing in a sound log" \
	./splat.sh <(printf '[    1.0] %s\n' "${good[@]}")
check "a data race within the kernel is not ours" \
	./splat.sh <(race ''; race '')
fails "... one with a frame of the module is" ./splat.sh <(race ''; race ' [atp]')
fails "... so is what another CPU says meanwhile" \
	./splat.sh <(race '' 'WARNING: CPU: 1 PID: 9 at net/core/dev.c:1 f+0x1/0x2')
fails "... and a report that has no end" \
	./splat.sh <(race '' | sed '$d')
clock='ktime_get_mono_fast_ns / timekeeping_update'
poll='poll_schedule_timeout.constprop.0 / pollwake'
check "... and one of the clock, whoever asks" \
	./splat.sh <(race ' [atp]' '' "$clock")
check "... and one of poll(2), whoever wakes" \
	./splat.sh <(race ' [atp]' '' "$poll")
fails "... but no other one there" \
	./splat.sh <(race ' [atp]' '' "atp_poll / pollwake")
fails "... but for what another CPU says meanwhile" \
	./splat.sh <(race ' [atp]' 'kernel BUG at net/core/dev.c:1' "$clock")
entry=' asm_sysvec_apic_timer_interrupt+0x1/0x2'
check "... and one of an interrupt, whatever was interrupted" \
	./splat.sh <(race $'\n'"$entry"$'\n atp_poll+0x1/0x2 [atp]')
fails "... but not what the module does in one" \
	./splat.sh <(race $'\n atp_xmit+0x1/0x2 [atp]\n'"$entry")
check "nothing in an empty log" ./splat.sh /dev/null
fails "a log that is not there" ./splat.sh /nonexistent
finish
