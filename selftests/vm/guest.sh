#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The virtual machine's first process, second half, on the host's own user
# space: run the command, report, power off. /vm is the folder that run-vm.sh
# made for this run.

export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export HOME=/root LANG=C.UTF-8 ATP_VM=1

finish() {
	dmesg >/vm/dmesg
	"$(</vm/top)/selftests/vm/checkers.sh" >>/vm/dmesg
	cat /proc/sys/kernel/tainted >/vm/tainted
	echo "$1" >/vm/status
	busybox poweroff -f
}

cd "$(</vm/top)" || finish 125

# A kernel patches its code when the first tunnel socket of UDP comes and when
# the last one goes.  Jobs do that all the time, and run-vm.sh says what emulators
# make of it: have one that stays.
echo 1 >/proc/sys/net/core/fb_tunnels_only_for_init_net
modprobe -a fou fou6 && ip fou add port 9 ipproto 4 &&
	ip -6 fou add port 9 ipproto 4

# The port can be open only once, while a command may open /dev/stdout:
# it gets a pipe.
port=$(echo /dev/vport*p1)
[ -c "$port" ] || finish 125
mkfifo /run/vm.pipe
cat /run/vm.pipe >"$port" &
cat=$!
exec 3>/run/vm.pipe
bash /vm/command </dev/null >&3 2>&3 3>&-
status=$?
exec 3>&-
# Whatever the command left in the background must not keep us.
for _ in {1..50}; do
	kill -0 "$cat" 2>/dev/null || break
	sleep 0.02
done
finish "$status"
