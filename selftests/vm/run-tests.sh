#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# In the virtual machine: run the tests of a list one after the other, look
# into the kernel log after each.
#
# usage: run-tests.sh DIR
#
# DIR/list holds one test per line: ID TIMEOUT SUITE COMMAND [ARG]...
# For each DIR/ID.log and DIR/ID.log.result appear. A test whose result is
# there already is passed over, so that the list can go on after a crash.

set -u

here=$(cd "$(dirname "$0")" && pwd)
dir=$1
# shellcheck source=report.sh
. "$here/report.sh"

# What runs before any test, by process ID
declare -A known=()

# processes: set REPLY to those IDs that are not known; the kernel's own threads
# have no program.  Without a process of its own.
processes() {
	local dir

	REPLY=
	for dir in /proc/[0-9]*; do
		[ ! -e "$dir/exe" ] || [ -n "${known[${dir#/proc/}]-}" ] ||
			REPLY+=" ${dir#/proc/}"
	done
}

# What a test leaves behind must not meet the next one.
# clean NAME LOG
clean() {
	local pid command

	processes
	for pid in $REPLY; do
		command=$(tr '\0' ' ' <"/proc/$pid/cmdline") 2>/dev/null
		kill -KILL "$pid" 2>/dev/null || continue
		printf '  %-7s %s: %s\n' LEFT "$1" "$command"
		echo "# left behind: $command" >>"$2"
	done
	ip -all netns delete 2>/dev/null
}

processes
for pid in $REPLY; do
	known[$pid]=1
done

while read -r -a test <&9; do
	id=${test[0]}
	[ ! -e "$dir/$id.log.result" ] || continue
	log=/tmp/$id.log
	echo "${test[*]:2}" >"$dir/running"
	echo "$id" >"$dir/running.id"
	before=$(dmesg | wc -l)
	start=$SECONDS

	"$here/run-one.sh" "$log" "${test[@]:1}"

	dmesg | tail -n "+$((before + 1))" >"/tmp/$id.kernel"
	if ! "$here/splat.sh" "/tmp/$id.kernel" >"/tmp/$id.splat"; then
		sed 's/^/# kernel: /' "/tmp/$id.splat" >>"$log"
		read -r passed failed <"$log.result"
		sed -i "1s/.*/$passed $((failed + 1))/" "$log.result"
		echo "SPLAT in the kernel log" >>"$log.result"
	fi
	clean "${test[*]:2}" "$log"
	report "${test[*]:2}" "$log" $((SECONDS - start))
	cp "$log" "$dir/$id.log"
	cp "$log.result" "$dir/$id.result.new"
	mv "$dir/$id.result.new" "$dir/$id.log.result"
	rm -f "$dir/running" "$dir/running.id"
done 9<"$dir/list"
exit 0
