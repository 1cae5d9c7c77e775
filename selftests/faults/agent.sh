#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# agent.sh DIR: in a machine, carry out what the host leaves in DIR, one after
# another: N.do is a script, N.out and N.status are what came of it. An empty
# script ends it. test_machines.py is the other end.

dir=$1

# Somebody was here before: the emulator has failed, and run-vm.sh booted again.
mkdir "$dir/begun" || exit

# leave FILE: nobody sees it before it is whole
leave() {
	sync "$1.new" && mv "$1.new" "$1"
}

for ((n = 1; ; n++)); do
	until [ -e "$dir/$n.do" ]; do
		sleep 0.05
	done
	[ -s "$dir/$n.do" ] || break
	bash "$dir/$n.do" >"$dir/$n.out.new" 2>&1 </dev/null
	echo $? >"$dir/$n.status.new"
	leave "$dir/$n.out"
	leave "$dir/$n.status"
done
