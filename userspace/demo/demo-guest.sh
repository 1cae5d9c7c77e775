#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The demo's second half, in the virtual machine: the rack, the job, and the
# training; twice with the switch, once without.
#
# usage: demo-guest.sh FILE.npz OPTIMISER
#
# Leaves what it measures in /out/demo, and the first packets at the PS.
#
# OPTIMISER is where the steps are taken: "worker", or "ps" for an application on
# the PS host; then the last training is once more with the workers'.

set -u

top=$(cd "$(dirname "$0")/../.." && pwd)
data=$1
optimiser=$2
out=/out/demo
workers=4
job=7
payload=1400
packets=2000

export RACK_IP=$top/build/iproute2/ip
# shellcheck source=/dev/null
. "$top/selftests/lib/rack.sh"

say() {
	printf '\n-- %s\n' "$*"
}

die() {
	echo "demo: $*"
	exit 1
}

# What the PS has received and counted so far
measure() {
	rack_ps_bytes >"$out/$1.bytes" || die "no counters of the PS's device"
	rack_atp ps -json stats show job $job >"$out/$1.stats" ||
		die "no counters of the PS"
}

# start HOST NAME RESULT [ARGUMENT...]: a process of the training
start() {
	local host=$1 name=$2 result=$3

	shift 3
	rack_in "$host" env \
		PYTHONPATH="$top/userspace/python" \
		PYTHONDONTWRITEBYTECODE=1 \
		LIBATP="$top/build/lib/libatp.so.1" \
		/usr/bin/python3 "$top/userspace/demo/train.py" \
		--job $job --workers $workers --label "$name" --data "$data" \
		--optimiser "$optimiser" --result "$out/$name-$result.json" \
		"$@" &
	pids+=($!)
}

# train NAME WHAT: a process per worker, each in its own host
train() {
	local name=$1 rank pids=() failed=0

	say "$2"
	measure "$name-before"
	[ "$optimiser" = worker ] || start ps "$name" server --serve
	for ((rank = 0; rank < workers; rank++)); do
		start "w$rank" "$name" "$rank" --rank "$rank"
	done
	for pid in "${pids[@]}"; do
		# the others get an error that names the rank, so all end
		wait "$pid" || failed=1
	done
	[ $failed -eq 0 ] || die "the training failed"
	measure "$name-after"
}

say "$workers worker hosts, a PS host and a switch, each a network namespace"
modprobe atp || die "cannot load atp.ko"
trap rack_down EXIT
rack_up $workers 1500 || die "cannot lay out the rack"
ip netns list | sed 's/ .*//' | sort | paste -sd ' '

say "the job, on every host"
rack_members $workers 4 ps
[ "$optimiser" = worker ] && server= || server=server
echo "ip atp job add $job $REPLY fragment $payload $server"
# shellcheck disable=SC2086
rack_job_add $job $workers 4 fragment $payload $server ||
	die "cannot add the job"
rack_atp ps job show

say "the switch: XDP in native mode at each of its ports"
rack_switch_on || die "cannot attach the XDP program"
native=$(ip -n atp-switch link show type veth | grep -c ' xdp ')
[ "$native" -eq $((workers + 1)) ] ||
	die "XDP is native at $native ports, not at $((workers + 1))"
echo "native at all $native ports"

rack_in ps "$top/userspace/demo/capture.py" eth0 "$out/demo.pcap" $packets &
capture=$!
until [ -e "$out/demo.pcap" ]; do
	kill -0 $capture || die "the packets cannot be captured"
	sleep 0.1
done
train switch "training with the switch"
kill $capture 2>/dev/null && die "fewer than $packets frames came to the PS"
train again "the same once more: are the bits the same?"
rack_atp switch switch show job $job
rack_switch_off || die "cannot detach the XDP program"
train noswitch "the same without the switch"
[ "$optimiser" = worker ] && exit

optimiser=worker
rack_job_del $job || die "cannot delete the job"
rack_job_add $job $workers 4 fragment $payload || die "cannot add the job"
train workers "the same, with the steps taken by the workers"
