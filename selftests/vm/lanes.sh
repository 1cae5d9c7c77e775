#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Sourced by run.sh: the tests in virtual machines. Each kernel has a list of
# tests, and a lane, which boots one machine after the other: the first with this
# kernel; when none of its tests is left to be taken, with the next kernel, to help
# with that one's. Where there is much to do there are three, and the first kernel
# has those that are over. Lanes run at the same time, as much of what a test does is
# to wait, and none of them ends as long as there is a test to be taken.
#
# Of a kernel build/vm-out/tests/ID/KERNEL/, which its machines see, has
#
#	list		a line for each test: ID TIMEOUT SUITE COMMAND [ARG]...
#	todo/ID		its line again, until a machine takes it
#	running-LANE	the line that this lane's machine has taken
#	blamed-LANE	is there if one of this machine's tests has been blamed
#			for a warning in the kernel log
#	ID.log, ID.log.result	when it has ended

# shellcheck disable=SC2154 # of run.sh
lists=$top/build/vm-out/tests/$id
lanes=()
# tests in all lists
listed=0

# make_list KERNEL TEST...
make_list() {
	local dir=$lists/$1 slow=1 n=0 test
	local -a words

	! is_debug "$1" || slow=8
	shift
	listed=$((listed + $#))
	rm -rf "$dir"
	mkdir -p "$dir/todo"
	for test; do
		n=$((n + 1))
		read -r -a words <<<"$test"
		words[1]=$((words[1] * slow))
		echo "$n ${words[*]:1}" | tee "$dir/todo/$n"
	done >"$dir/list"
}

# time_left DIR: the time limits of all that is left, in sum
time_left() {
	# what is taken meanwhile is not there
	cat "$1"/todo/* 2>/dev/null |
		awk '{ sum += $2 } END { print sum + 0 }'
}

# run_list KERNEL LANE: take tests of this kernel until none is left. All of them
# in one machine; a new machine after a crash or a timeout.
run_list() {
	local dir=$lists/$1 running=$lists/$1/running-$2 log=$logs/vm-$1-$2.log
	local limit n name status

	# A machine that finds nothing left would have been booted in vain.
	while limit=$(time_left "$dir"); [ "$limit" -gt 0 ]; do
		"$here/vm/run-vm.sh" --kernel "$1" --timeout $((limit + 120)) \
			--out "$log" -- env SUITES="$suites" \
			selftests/vm/run-tests.sh "/out/tests/$id/$1" "$2"
		status=$?
		[ "$status" -ne 0 ] || break
		if [ ! -e "$running" ]; then
			# All tests ended, or none began. A warning that one
			# of them has been blamed for counts once.
			[ "$status" -eq 97 ] && [ -e "$dir/blamed-$2" ] && break
			say FAIL "the machine ended with status $status"
			touch "$log"	# may not have come so far
			printf '0 1\nstatus %s\n' "$status" >"$log.result"
			break
		fi
		read -r n _ name <"$running"
		say FAIL "$name: the machine died"
		cp "$log" "$dir/$n.log"
		printf '0 1\nthe machine died\n' >"$dir/$n.log.result"
		rm "$running"
	done
}

# lane NUMBER KERNEL...: in the background
lane() {
	local kernel

	set -o pipefail
	for kernel in "${@:2}"; do
		run_list "$kernel" "$1" | sed -u "s/^/  $kernel-$1/" || return
	done
}

# count_list KERNEL: when all lanes have ended
count_list() {
	local dir=$lists/$1 n name log

	while read -r n _ name; do
		log=$dir/$n.log
		if [ -e "$log.result" ]; then
			count "$1" "$name" "$log"
		else
			fail "$1 $name: did not run"
		fi
	done <"$dir/list"
	for log in "$logs/vm-$1-"*.log; do
		[ ! -e "$log.result" ] || count "$1" "the machine" "$log"
	done
}

# run_lanes KERNEL...: those that have a list
run_lanes() {
	local kernel n=0 first=("$@")

	# For few tests it is not worth the time that a machine takes to boot.
	while [ "$listed" -ge 12 ] && [ ${#first[@]} -lt 3 ]; do
		first+=("$1")
	done
	trap 'kill -- "${lanes[@]/#/-}" 2>/dev/null; exit 130' INT TERM
	for kernel in "${first[@]}"; do
		n=$((n + 1))
		# a process group, to be stopped as one
		set -m
		lane "$n" "$@" &
		set +m
		lanes+=($!)
		# the next one begins with the next kernel
		set -- "${@:2}" "$1"
	done
	n=0
	for kernel in "${first[@]}"; do
		n=$((n + 1))
		wait "${lanes[n - 1]}" ||
			fail "lane $n, of kernel $kernel, did not end"
	done
	trap - INT TERM
	for kernel; do
		count_list "$kernel"
	done
}
