#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Do the packages install on a fresh Debian 12, build the module there by DKMS
# for both of its kernels, work with each, leave a switch alone when they are
# upgraded, and nothing behind when they are removed?
#
# The virtual machine has a disk of its own, with what Debian's installer calls
# a minimal system, both kernels with their headers, and what the packages
# depend on; it boots as Debian does. It has no network: what is missing stays
# missing. The disk is made once, as long as what is on it stays the same.
# guest.sh says what is tested.

cd "$(dirname "$0")" || exit 1
# shellcheck source=../vm/tap.sh
. ../vm/tap.sh

top=$(cd ../.. && pwd)
deb=$top/build/deb
fresh=$top/build/debian-12
logs=$top/build/vm-logs
run=
qemu=

# shellcheck disable=SC2317 # called by trap
cleanup() {
	[ -z "$qemu" ] || kill "$qemu"
	[ -z "$run" ] || rm -rf "$run"
}

packages() {
	printf '%s\n' "$deb"/*.deb | grep -v -e -dbgsym_
}

# What they depend on besides each other.
depends() {
	local file

	for file in $(packages); do
		dpkg-deb -f "$file" Depends
	done | tr ',' '\n' | sed 's/^ *//; s/[ :|(].*//' | sort -u |
		grep -v -x -F -f <(packages | sed 's|.*/||; s/_.*//')
}

# Besides, what compiling a C program takes.
wanted() {
	printf '%s\n' linux-{image,headers}-{,6.12-}amd64 initramfs-tools \
		gcc libc6-dev pkg-config
	depends
}

# Where this machine has Debian's packages from.
mirrors() {
	# shellcheck disable=SC2016 # for apt
	apt-get indextargets --format \
		'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' \
		'Created-By: Packages' |
		grep -E ' bookworm(-updates|-security)? main$'
}

key() {
	{
		declare -f debian unit
		wanted
	} | sha256sum
}

# unit: what runs the test, and ends the machine when that has ended
unit() {
	cat <<-'END'
	[Unit]
	Description=Test of the packages

	[Service]
	Type=idle
	ExecStart=/bin/sh -c "mkdir -p /exchange && mount -t 9p -o trans=virtio,version=9p2000.L exchange /exchange && exec /exchange/guest.sh"
	ExecStopPost=systemctl --no-block poweroff
	END
}

# Debian on a disk, with its kernels beside it.
debian() {
	local new series

	[ "$(cat "$fresh/key" 2>/dev/null)" != "$(key)" ] || return 0
	new=$fresh.new
	rm -rf --one-file-system "$fresh" "$new"
	mkdir -p "$new"
	wanted >"$new/wanted"
	# "important" is what debootstrap installs, too. What is mounted for that
	# is to be gone with it, however it ends.
	mirrors | unshare --mount mmdebstrap --quiet --mode=root --variant=important \
		--include="$(paste -s -d , "$new/wanted")" \
		bookworm "$new/root" - || return 1

	echo '/dev/vda / ext4 defaults 0 1' >"$new/root/etc/fstab"
	echo debian >"$new/root/etc/hostname"
	tr -d - </proc/sys/kernel/random/uuid >"$new/root/etc/machine-id"
	unit >"$new/root/etc/systemd/system/packages-test.service"
	ln -s ../packages-test.service \
		"$new/root/etc/systemd/system/multi-user.target.wants/"
	mkdir "$new/root/exchange"
	for series in 6.1 6.12; do
		cp "$new"/root/boot/vmlinuz-"$series".* "$new/vmlinuz-$series"
		cp "$new"/root/boot/initrd.img-"$series".* "$new/initrd-$series"
	done
	mke2fs -q -t ext4 -d "$new/root" "$new/disk" 6G || return 1
	rm -rf "$new/root"
	key >"$new/key"
	mv "$new" "$fresh"
}

# boot SERIES STAGE: show what guest.sh says there, through a pipe: a file QEMU
# would begin anew
boot() {
	local cat cmdline="root=/dev/vda rw console=ttyS0 panic=-1 oops=panic"

	cmdline+=" log_buf_len=8M mitigations=off init_on_alloc=0"
	cmdline+=" random.trust_cpu=on cryptomgr.notests no_timer_check"
	cmdline+=" systemd.setenv=STAGE=$2"
	exec 8> >(exec cat)
	cat=$!
	setpriv --pdeathsig TERM qemu-system-x86_64 -M q35 \
		-accel tcg,thread=multi,tb-size=512 -cpu Nehalem,+rdrand \
		-smp 1 -m 2048 \
		-nodefaults -no-user-config -no-reboot -display none -nic none \
		-serial "file:$logs/packages-$1.log" \
		-device virtio-rng-pci \
		-device virtio-serial-pci \
		-chardev "file,id=out,path=/dev/stdout" \
		-device virtserialport,chardev=out,name=out \
		-drive "file=$run/disk,format=raw,if=virtio,cache=unsafe" \
		-virtfs "local,path=$run/exchange,mount_tag=exchange,security_model=none" \
		-kernel "$fresh/vmlinuz-$1" -initrd "$fresh/initrd-$1" \
		-append "$cmdline" </dev/null >&8 &
	qemu=$!
	exec 8>&-
	wait "$qemu"
	qemu=
	wait "$cat"
}

powered_down() {
	grep 'reboot: Power down' "$logs/packages-$1.log" || {
		tail -n 30 "$logs/packages-$1.log"
		return 1
	}
}

# stage SERIES STAGE: what guest.sh says there goes on with the count of results
stage() {
	boot "$@"
	tap_n=$(<"$run/exchange/results")
	[ ! -e "$run/exchange/failed" ] || tap_failed=1
	check "$1: the machine went down in order" powered_down "$1"
	check "$1: nothing of note in the kernel log" \
		../vm/splat.sh "$logs/packages-$1.log"
	echo "$tap_n" >"$run/exchange/results"
}

# The same packages, as if they were of the next version
newer() {
	local file old new tree=$run/tree

	mkdir -p "$run/exchange/newer"
	for file in $(packages); do
		old=$(dpkg-deb -f "$file" Version)
		new=$old+1
		rm -rf "$tree"
		dpkg-deb -R "$file" "$tree" || return
		sed -i -e "s/^Version: .*/Version: $new/" \
			-e "/^Depends:/s/= $old)/= $new)/g" "$tree/DEBIAN/control"
		dpkg-deb --root-owner-group -b "$tree" \
			"$run/exchange/newer" || return
	done
}

trap cleanup EXIT
trap 'exit 130' INT TERM HUP
plan 41
check "the packages are built" make --no-print-directory -C "$top" deb
check "a fresh Debian 12" debian
run=$(mktemp -d "$top/build/install.XXXXXX")
mkdir -p "$run/exchange" "$logs"
packages | xargs cp -t "$run/exchange"
check "the same of the next version" newer
cp guest.sh ../vm/{tap,splat}.sh "$run/exchange"
echo "$tap_n" >"$run/exchange/results"
cp --sparse=always "$fresh/disk" "$run/disk"
stage 6.1 install
stage 6.12 remove
finish
