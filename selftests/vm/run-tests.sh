#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# In the virtual machine: run the tests of a list one after the other, look
# into the kernel log after each.
#
# usage: run-tests.sh DIR LANE
#
# lanes.sh says what is in DIR. Machines of other lanes may take tests from the
# same list at the same time.

set -u

here=$(cd "$(dirname "$0")" && pwd)
dir=$1
running=$dir/running-$2
blamed=$dir/blamed-$2
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

# run-vm.sh has booted again, after a fault of the emulator: what ran is to be taken
# once more, and of warnings this kernel log knows nothing.
if [ -e "$running" ]; then
	read -r id _ <"$running"
	mv "$running" "$dir/todo/$id"
fi
rm -f "$blamed"

while read -r -a test <&9; do
	id=${test[0]}
	[ -e "$dir/todo/$id" ] || continue
	# If two try at the same time, the host lets one of them rename it.
	mv "$dir/todo/$id" "$running" 2>/dev/null || continue
	log=/tmp/$id.log
	before=$(dmesg | wc -l)
	start=$SECONDS

	"$here/run-one.sh" "$log" "${test[@]:1}"

	dmesg | tail -n "+$((before + 1))" >"/tmp/$id.kernel"
	if ! "$here/splat.sh" "/tmp/$id.kernel" >"/tmp/$id.splat"; then
		sed 's/^/# kernel: /' "/tmp/$id.splat" >>"$log"
		read -r passed failed <"$log.result"
		sed -i "1s/.*/$passed $((failed + 1))/" "$log.result"
		echo "SPLAT in the kernel log" >>"$log.result"
		touch "$blamed"
	fi
	clean "${test[*]:2}" "$log"
	report "${test[*]:2}" "$log" $((SECONDS - start))
	cp "$log" "$dir/$id.log"
	cp "$log.result" "$dir/$id.result.new"
	mv "$dir/$id.result.new" "$dir/$id.log.result"
	rm -f "$running"
done 9<"$dir/list"
exit 0
