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
	# What a test leaves behind must not meet the next one.
	ip -all netns delete 2>/dev/null

	report "${test[*]:2}" "$log" $((SECONDS - start))
	cp "$log" "$dir/$id.log"
	cp "$log.result" "$dir/$id.result.new"
	mv "$dir/$id.result.new" "$dir/$id.log.result"
	rm -f "$dir/running" "$dir/running.id"
done 9<"$dir/list"
exit 0
