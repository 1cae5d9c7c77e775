#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# In the machine of test_install.sh: what the packages do on a fresh Debian 12,
# first under its kernel 6.1, where they are installed, then under 6.12, where
# they are removed. STAGE says which it is: install or remove.

export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive HOME=/root

cd /exchange || exit 1
exec >/dev/virtio-ports/out 2>&1
# shellcheck source=../vm/tap.sh
. ./tap.sh
tap_n=$(<results)
# till all that boots has booted
systemctl is-system-running --wait >/dev/null

names=$(printf '%s\n' *.deb | sed 's/_.*//')
running=$(uname -r)
series=${running%.*}
old=$(basename /lib/modules/6.1.*)
new=$(basename /lib/modules/6.12.*)

# What is on the disk, and how large. The sizes of folders say nothing.
files() {
	find / -xdev \( -path /exchange -o -path /tmp -o -path /var/tmp \) \
		-prune -o -type d -print -o -printf '%p %s %l\n' | sort
}

# What a box that switches takes
install_switch() {
	apt-get -y --no-install-recommends install \
		./atp-tools_*.deb ./atp-switch_*.deb && ! dpkg -s atp-dkms
}

# What a program in Python takes; it is told that the module is missing.
install_python() {
	apt-get -y --no-install-recommends install \
		./libatp_*.deb ./python3-atp_*.deb && ! dpkg -s atp-dkms &&
		! python3 -c 'import atp; atp.join(7, 0)' 2>said &&
		tail -n 1 said | grep 'modprobe atp'
}

install_all() {
	apt-get -y install ./*.deb
}

# Program and maps, which hold the sums
what_runs() {
	ip -details link show port | grep -o 'prog/xdp id [0-9]*' &&
		stat -c '%n %i' /sys/fs/bpf/atp/netns-*/*
}

all_newer() {
	# shellcheck disable=SC2086 # words
	dpkg-query -W -f '${Package} ${Version}\n' $names |
		awk '$2 !~ /\+1$/ { print; old = 1 } END { exit old }'
}

# Who is at the switch does not notice.
upgrade_all() {
	systemctl start atp-switch && what_runs >before.upgrade &&
		apt-get -y install ./newer/*.deb && all_newer && has_switch &&
		what_runs | diff before.upgrade -
}

# The version in the module is that of the kernel it is for.
built() {
	dkms status -m atp -k "$1" | grep ': installed$' &&
		modinfo -k "$1" -n atp | grep "^/lib/modules/$1/updates/dkms/" &&
		modinfo -k "$1" -F vermagic atp | grep -F "$1 " && return
	tail -n 40 /var/lib/dkms/atp/*/build/make.log
	return 1
}

# A rank each for Python and C.  Their values, up to 999 / 256, are multiples of
# 1e-8, so that sums are exact.
ranks() {
	cat >rank.py <<-'END'
	import atp, numpy

	with atp.join(7, 0) as job:
	    values = numpy.arange(10000, dtype="float32") % 1000 / 256
	    job.allreduce(values)
	assert (values == numpy.arange(10000) % 1000 / 128).all(), values
	END
	cat >rank.c <<-'END'
	#include <atp.h>

	int main(void)
	{
		static float values[10000];
		struct atp *atp = atp_join(7, 1, 0);
		int i;

		for (i = 0; i < 10000; i++)
			values[i] = i % 1000 / 256.0;
		if (!atp || atp_allreduce(atp, values, 10000, ATP_FLOAT32))
			return 1;
		atp_leave(atp);
		for (i = 0; i < 10000; i++)
			if (values[i] != i % 1000 / 128.0)
				return 2;
		return 0;
	}
	END
}

compiles() {
	# shellcheck disable=SC2046 # words
	gcc -Wall -Werror -o rank rank.c $(pkg-config --cflags --libs libatp)
}

job() {
	atp job add 7 ps 127.0.0.1 worker 127.0.0.2 worker 127.0.0.2 &&
		atp job show 7 | grep 127.0.0.2
}

sums() {
	local status=0

	timeout 120 ./rank &
	timeout 120 python3 rank.py || status=1
	wait $! || status=1
	return $status
}

# measure RANK: beside Gloo, and both have to be told of
measure() {
	timeout 120 atp perf job 7 rank "$1" bytes 10000 rounds 2 vs gloo >"rank$1" ||
		return
	cat "rank$1"
	grep -q '^atp: job 7 ' "rank$1" && grep -q '^gloo: job 7 ' "rank$1"
}

measures() {
	local status=0

	measure 1 &
	measure 0 || status=1
	wait $! || status=1
	return $status
}

unloads() {
	atp job del 7 && modprobe -r atp && [ ! -e /sys/module/atp ]
}

works() {
	check "$series: the module loads" modprobe atp
	check "$series: a job is added and shown" job
	check "$series: Python and C add" sums
	check "$series: atp perf measures ATP and Gloo" measures
	check "$series: the module unloads" unloads
}

# Ports that are there at boot, and the switch at them, are the administrator's.
configure_switch() {
	mkdir -p /etc/atp
	cat >/etc/network/interfaces.d/port <<-'END'
	auto port
	iface port inet static
		pre-up ip link add port type veth peer name host
		up ip link set host up
		address 10.0.0.253/24
	END
	cat >/etc/atp/switch <<-'END'
	switch attach dev port
	switch job replace 7 ps 10.0.0.254 dev port lladdr 02:00:00:00:00:fe worker 10.0.0.1 dev port lladdr 02:00:00:00:00:01
	END
	ifup port
}

attached() {
	ip link show port | grep -w prog/xdp &&
		atp switch show | grep -w port
}

has_switch() {
	systemctl is-active atp-switch && attached
}

start_and_stop() {
	systemctl start atp-switch && has_switch &&
		systemctl reload atp-switch && systemctl stop atp-switch &&
		! systemctl is-active atp-switch && attached
}

# The box that switches has no module.
shown_without_module() {
	[ ! -e /sys/module/atp ] || return
	atp check >said
	cat said
	grep '^ok   module: not loaded' said && ! grep '^bad .*module' said &&
		atp top batch interval 10ms count 1 >said && cat said &&
		grep '^switch: .* of 4096 aggregators' said &&
		grep '^ *7 ' said &&
		atp stats prometheus >said && cat said &&
		grep '^atp_switch_aggregators 4096$' said &&
		grep '^atp_switch_aggregated_total{job_id="7"} ' said
}

# As operations.rst says, which has the same lines
beside_others() {
	install -D -m 644 /usr/share/doc/atp-switch/examples/dispatcher.conf \
		/etc/systemd/system/atp-switch.service.d/dispatcher.conf &&
		systemctl daemon-reload && systemctl restart atp-switch &&
		has_switch && systemctl show atp-switch |
		grep '^CapabilityBoundingSet=.*cap_sys_admin'
}

purge_all() {
	# shellcheck disable=SC2086 # words
	apt-get -y purge $names && ! dpkg -s $names 2>/dev/null | grep .
}

no_switch() {
	! attached && ! ls -d /sys/fs/bpf/atp/netns-* &&
		! systemctl cat atp-switch
}

no_module() {
	[ -z "$(dkms status)" ] && ! modinfo -k "$1" atp
}

same_files() {
	files | diff before - | grep '^[<>]' >changed
	# but for logs, caches and lists of Debian's own, and the key with which
	# DKMS signs modules
	! grep -v -E -e '^. /var/(log|cache|lib/apt)/' \
		-e '^. /var/lib/dpkg/(available|lock|status|triggers)' \
		-e '^. /var/lib/systemd/(random-seed|timers)' \
		-e '^. /var/lib/dkms/mok\.(key|pub) ' changed
}

case $STAGE in
install)
	files >before
	check "a switch's packages install, without the module" install_switch
	fails "the switch waits for its configuration" \
		systemctl is-active atp-switch
	configure_switch
	check "the switch starts, reloads and stops" start_and_stop
	check "it is shown without the module" shown_without_module
	check "the drop-in for a dispatcher is taken" beside_others
	rm -r /etc/systemd/system/atp-switch.service.d
	check "Python's packages install, and say that the module is missing" \
		install_python
	check "all packages install" install_all
	check "DKMS has built for 6.1" built "$old"
	check "DKMS has built for 6.12" built "$new"
	ranks
	check "a program compiles" compiles
	works
	check "an upgrade leaves the switch alone" upgrade_all
	check "DKMS has built again for 6.1" built "$old"
	check "DKMS has built again for 6.12" built "$new"
	works
	;;
remove)
	check "the switch is there after a boot" has_switch
	works
	check "all packages are purged" purge_all
	check "no switch is left" no_switch
	check "no module is left for 6.1" no_module "$old"
	check "no module is left for 6.12" no_module "$new"
	rm -r /etc/atp /etc/network/interfaces.d/port
	check "no file is left" same_files
	;;
esac
echo "$tap_n" >results
[ "$tap_failed" -eq 0 ] || touch failed
