#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The end-to-end matrix, in the virtual machine.  Each case is a line for
# case.sh, to be run by hand as it stands:
#
#   selftests/vm/run-vm.sh -- selftests/rack/case.sh workers=4 loss=1
#
# A group is gone through twice, first without the switch and then with it: to
# load its program is what takes longest here.
#
# usage: matrix.sh GROUP [N/OF]	the functions group_* below; only the Nth case of
#				each OF

set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=/dev/null
. "$here/../lib/rack.sh"
# shellcheck source=/dev/null
. "$here/../vm/tap.sh"

# rack WORKERS MTU: for the cases that follow
rack() {
	[ "$switch" = off ] || return 0
	rack_up "$@" && return
	echo "Bail out! no rack"
	exit 1
}

run() {
	local output status

	# with the switch it is another's turn than without
	turn=$((turn + 1))
	[ $((turn % of)) -eq 0 ] || return 0
	output=$("$here/case.sh" rack=keep "$@" 2>&1)
	status=$?
	result $status "$*"
	echo "# ${output//$'\n'/$'\n'# }"
}

# try [WORD]...: with the switch if they say so
try() {
	local on=off

	[[ " $* " != *" switch=on "* ]] || on=on
	[ "$switch" = "$on" ] && run "$@"
}

both() {
	run switch="$switch" "$@"
}

# What an MTU of 1,500 carries, over IPv4 and IPv6
group_mtu() {
	local family

	rack 4 1500
	for family in 4 6; do
		both workers=4 payload=248 family=$family
		both workers=4 payload=1400 family=$family
	done
}

# The switch at network cards instead of veth, in native mode there, too
group_cards() {
	local payload

	RACK_NICS=1 rack 2 1500
	for payload in 248 1400; do
		both workers=2 payload=$payload
		both workers=2 payload=$payload values=wild dtype=mixed \
			loss=2 lanes=4096
	done
	try switch=on family=6 workers=2 payload=1400
	try switch=on workers=2 attach="aggregators 1" reorder=20 \
		duplicate=10 lanes=2048
	[ "$switch" = on ] || return
	rack_switch_on && cards_native
	result $? "every port of the switch is a card and runs XDP natively"
}

cards_native() {
	local host mode driver

	for host in $(rack_hosts); do
		mode=$(ip -n atp-switch -j link show "$host" |
			sed -n 's/.*"xdp":{"mode":\([0-9]*\).*/\1/p')
		driver=$(rack_in switch ethtool -i "$host" |
			sed -n 's/^driver: //p')
		echo "# $host: driver $driver, XDP mode $mode"
		[ "$driver" = virtio_net ] && [ "$mode" = 1 ] || return
	done
}

group_workers() {
	local workers payload

	rack 32 3300
	for workers in 1 2 4 8 32; do
		for payload in 248 1400 3072; do
			both workers=$workers payload=$payload chunks=6 \
				lanes=4096
		done
	done
}

group_loss() {
	local loss payload

	rack 8 3300
	both workers=8 payload=1400 loss=0.1 chunks=32
	for loss in 1 10; do
		for payload in 248 1400 3072; do
			both workers=4 payload=$payload loss=$loss lanes=4096
		done
		try switch=on workers=1 loss=$loss lanes=4096
		try switch=on workers=2 loss=$loss lanes=4096
		try switch=on workers=8 loss=$loss lanes=4096
	done
	try switch=on family=6 workers=4 payload=1400 loss=10 lanes=4096
	# Half of all packets between a worker and the PS are lost, and the same
	# of the answers.
	for payload in 248 1400; do
		both workers=4 payload=$payload loss=30 lanes=$((payload * 2)) \
			chunks=3
	done
	both workers=8 payload=1400 loss=30 lanes=1000 chunks=3
	try switch=on workers=1 loss=30 lanes=500 chunks=3
	try switch=on workers=2 loss=30 lanes=500 chunks=3 values=wild \
		dtype=mixed
}

group_disorder() {
	local payload fault faults

	rack 4 3300
	for payload in 248 1400 3072; do
		# half of all cases shall have each of them, with and without
		faults="duplicate=20 reorder=25"
		[ $payload != 1400 ] || faults="reorder=25 duplicate=20"
		for fault in $faults; do
			both workers=4 payload=$payload "$fault"
		done
	done
	both workers=4 payload=248 jitter=2 lanes=4096
	both workers=4 payload=3072 jitter=20 chunks=4
	both workers=4 payload=1400 jitter=1 duplicate=20 loss=2 lanes=4096
	both workers=4 payload=1400 duplicate=10 reorder=10 loss=5 lanes=4096
	try switch=on family=6 workers=4 duplicate=10 reorder=10 loss=1
}

# Bits flip on the way to the switch, mostly in headers: netem leaves pages alone.
# Each bit of a packet, one at a time: faults/test_bits.py
group_corrupt() {
	local family

	rack 4 3300
	for family in 4 6; do
		both workers=4 family=$family corrupt=10 lanes=4096
	done
	both workers=4 payload=3072 corrupt=5 duplicate=10 reorder=10 \
		lanes=4096 values=wild dtype=mixed
}

# A cable is out for as long as it takes to be missed
group_cable() {
	local end ends host

	rack 4 1500
	for host in w1 w3 ps; do
		# half of all cases shall have each of them, with and without
		ends="host port"
		[ $host != w3 ] || ends="port host"
		for end in $ends; do
			both workers=4 chunks=16 lanes=4096 \
				at="5:replug $host $end" \
				at2="10:replug $host $end"
		done
	done
	both workers=4 family=6 chunks=16 lanes=4096 at="5:replug w1 host" \
		at2="10:replug ps host"
}

# Down to one aggregator: nearly all fragments collide and go to the PS.  A
# first window has ten, so that three cannot be enough; sixteen can, if nobody
# is slow.
group_collision() {
	local attach few want

	rack 8 1500
	for few in 1 3 16; do
		attach="aggregators $few"
		want=collision_busy
		[ "$few" != 16 ] || want=aggregated
		try switch=on attach="$attach" workers=4 want=$want
		try switch=on attach="$attach" workers=8 payload=1400
		try switch=on attach="$attach" workers=4 loss=5 lanes=4096
	done
	attach="aggregators 1"
	try switch=on attach="$attach" workers=4 values=edge dtype=mixed
	try switch=on attach="$attach" workers=4 reorder=20 duplicate=10
}

# The switch forgets, comes and goes while fragments are on their way
group_restart() {
	local payload then=aggregated

	rack 4 3300
	for payload in 248 3072; do
		try workers=4 payload=$payload chunks=16 switch=on \
			at="3:switch_restart" \
			at2="9:switch_restart"
		try workers=4 payload=$payload chunks=16 switch=on \
			at="5:switch_off"
		try workers=4 payload=$payload chunks=16 switch=off \
			at="5:switch_on"
		try workers=4 payload=$payload chunks=16 switch=off \
			at="3:switch_on" at2="9:switch_off"
		try workers=4 payload=$payload chunks=16 switch=on \
			at="3:switch_upgrade" at2="9:switch_upgrade"
		try workers=4 payload=$payload chunks=16 switch=on \
			at="3:switch_empty" at2="9:switch_empty"
		[ $payload -le 400 ] || then=oversize
		try workers=4 payload=$payload chunks=16 switch=on then=$then \
			at="3:switch_resize aggregators 3" \
			at2="9:switch_resize aggregators 9000 payload 400"
	done
	try workers=4 chunks=16 switch=on loss=2 lanes=4096 \
		at="2:switch_upgrade" at2="9:switch_empty"
	try workers=4 chunks=16 switch=on loss=2 lanes=4096 \
		at="3:switch_restart" at2="9:switch_restart"
	try workers=4 chunks=16 switch=on values=wild dtype=mixed lanes=4096 \
		at="3:switch_restart" at2="9:switch_off"
	try workers=4 family=6 chunks=16 switch=on at="3:switch_restart" \
		at2="9:switch_empty"
}

# Signs, ties, saturation, infinities, NaN; all lengths
group_numbers() {
	local dtype values scale

	rack 8 3300
	for dtype in float32 int32 mixed; do
		for values in edge wild; do
			both workers=4 dtype=$dtype values=$values lanes=4096
		done
	done
	both workers=8 dtype=mixed values=edge payload=1400
	both workers=8 dtype=mixed values=wild payload=3072
	both workers=1 dtype=mixed values=wild
	both workers=3 dtype=mixed values=wild payload=8 lanes=300 window=16
	for scale in 1 65536 1000003 4294967295; do
		try switch=on workers=4 values=wild scale=$scale lanes=4096
	done
	both workers=4 dtype=mixed values=wild tails=yes chunks=64 lanes=2000
	both workers=4 dtype=mixed tails=yes chunks=64 lanes=2000 payload=3072
	both workers=4 dtype=mixed values=wild loss=5 reorder=10 duplicate=10 \
		lanes=4096
}

# Jobs and runs that must not meet
group_apart() {
	rack 4 1500
	both workers=4 runs=6 chunks=3
	both workers=4 runs=4 chunks=3 loss=5 lanes=2048
	# late packets of one run come in the next
	both workers=4 runs=8 chunks=2 lanes=512 reorder=30 duplicate=30
	both workers=4 jobs=3 lanes=4096
	# One that could not be emptied, as its lock was held by a CPU that the
	# emulator had stopped, is taken until its time-out: longer than a case
	# lasts.  So the jobs may find one, or none, for themselves.
	try switch=on attach="aggregators 2" workers=4 jobs=3 lanes=4096 of=any
	try switch=on attach="aggregators 2" workers=4 jobs=2 lanes=4096 \
		values=wild dtype=mixed loss=2 of=any
	# the PS on a worker's host: that one is not behind the switch
	both workers=4 ps=w0 lanes=4096
	both workers=4 ps=w3 lanes=4096 payload=1400 values=wild dtype=mixed
	both workers=4 ps=w1 lanes=4096 loss=5
	try workers=1 ps=w0
}

# Ways to use the socket
group_sockets() {
	rack 4 1500
	both workers=4 args=--blocking
	both workers=4 args=--join-option
	both workers=4 args="--blocking --join-option" depth=1
	# more than the send buffer holds
	both workers=2 chunks=12 lanes=200000 depth=12 payload=1400
	# as much as it holds, as nothing is pulled while a push sleeps
	both workers=2 chunks=12 lanes=200000 depth=5 payload=1400 \
		args=--blocking
	both workers=2 chunks=2 lanes=1048000 payload=1400
	both workers=4 window=4
	both workers=4 window=4096 payload=1400
	both workers=4 chunks=200 lanes=1 depth=100
}

share=${2-1/1}
of=${share#*/}
if [ "$(type -t "group_${1-}")" != function ] ||
	! [[ $share =~ ^[1-9]/[1-9]$ ]] || [ "${share%/*}" -gt "$of" ]; then
	echo "usage: $0 $(declare -F | sed -n 's/.* group_//p' |
		paste -sd '|') [N/OF]"
	exit 2
fi >&2

modprobe atp || exit 1
trap rack_down EXIT
echo "TAP version 13"
turn=$((of - ${share%/*}))
for switch in off on; do
	"group_$1"
	turn=$((of - ${share%/*} + 1))
done
# shellcheck disable=SC2154 # of tap.sh
echo "1..$tap_n"
finish
