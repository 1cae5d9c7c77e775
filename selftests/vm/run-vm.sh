#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Boot a virtual machine with one of the tests' kernels, run a command in it
# on a writable view of this machine's files, bring its output, its exit
# status and the kernel log back.

set -euo pipefail

usage() {
	cat <<-EOF
	usage: run-vm.sh [OPTION]... -- COMMAND [ARG]...

	  --kernel NAME   folder of build/kernels/ (6.1, 6.12; kasan, kcsan
	                  after make check-debug; default 6.1)
	  --cpus N        default 2
	  --mem MIB       default 3072
	  --timeout S     default 600
	  --out FILE      the command's output, then the kernel log
	                  (default build/vm-logs/NAME.log)
	  --append WORDS  more words for the kernel's command line
	  --accel NAME    kvm or tcg (default: what works here)
	  --cable END     listen:SOCKET or connect:SOCKET: a network card, whose
	                  cable to another machine's is this Unix socket; who
	                  listens must be there first, and may stay when the
	                  other goes and comes

	The command runs as root in the checkout. Its files are the host's;
	what it changes is gone afterwards, except below /out, which is
	build/vm-out. If build/kmod/NAME/atp.ko exists, modprobe finds it.

	exit status: the command's; or
	   97  the kernel log holds a warning, though the command succeeded
	  124  timeout
	  125  the machine did not come up, or went down before its time
	EOF
}

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
build=$top/build

kernel=6.1
cpus=2
mem=3072
limit=600
out=
append=
accel=
cable=

while [ $# -gt 0 ]; do
	case $1 in
	--kernel) kernel=$2; shift ;;
	--cpus) cpus=$2; shift ;;
	--mem) mem=$2; shift ;;
	--timeout) limit=$2; shift ;;
	--out) out=$2; shift ;;
	--append) append=$2; shift ;;
	--accel) accel=$2; shift ;;
	--cable) cable=$2; shift ;;
	--help | -h) usage; exit 0 ;;
	--) shift; break ;;
	-*) usage >&2; exit 125 ;;
	*) break ;;
	esac
	shift
done
[ $# -gt 0 ] || { usage >&2; exit 125; }

# virtiofsd needs it
[ "$(id -u)" -eq 0 ] || exec sudo "$0" --kernel "$kernel" --cpus "$cpus" \
	--mem "$mem" --timeout "$limit" --out "$out" --append "$append" \
	--accel "$accel" --cable "$cable" -- "$@"

say() {
	printf 'run-vm: %s\n' "$*" >&2
}

die() {
	say "$*"
	exit 125
}

root=$build/kernels/$kernel
[ -e "$root/release" ] || die "no kernel $kernel in build/kernels/: \
selftests/deps.sh provides 6.1 and 6.12, make check-debug kasan and kcsan"
release=$(<"$root/release")
modules=$root/lib/modules/$release

# Let modprobe, and through it the kernel, find the module under test.
install_module() {
	local built=$build/kmod/$kernel/atp.ko there=$modules/updates/atp.ko

	if [ ! -e "$built" ]; then
		[ -e "$there" ] || return 0
		rm "$there"
	elif cmp -s "$built" "$there"; then
		return 0
	else
		mkdir -p "$modules/updates"
		cp "$built" "$there.new"
		mv "$there.new" "$there"
	fi
	depmod -b "$root" "$release"
}

# Modules that reach the host's files, each after those that it needs.
boot_modules() {
	local name

	for name in virtio_pci virtio_console virtio_rng 9pnet_virtio 9p virtiofs \
		overlay; do
		modprobe -d "$root" -S "$release" --show-depends "$name"
	done | sed -n 's/^insmod \([^ ]*\).*/\1/p' | awk '!seen[$0]++'
}

# The initial RAM disk depends on the kernel and the first script only.
make_initrd() {
	local sum dir files

	sum=$(cat "$here/init" "$0" "$root/release" "$(command -v busybox)" |
		sha256sum)
	initrd=$build/vm/initrd-$kernel-${sum:0:16}
	[ ! -e "$initrd" ] || return 0

	mkdir -p "$build/vm"
	dir=$(mktemp -d "$build/vm/initrd.XXXXXX")
	mkdir -p "$dir"/{bin,dev,modules}
	cp "$(command -v busybox)" "$dir/bin/busybox"
	install -m 755 "$here/init" "$dir/init"
	files=$(boot_modules)
	# a kernel may have all of them built in
	# shellcheck disable=SC2086 # one word per file
	[ -z "$files" ] || cp $files "$dir/modules/"
	for file in $files; do
		basename "$file"
	done >"$dir/modules/order"
	(cd "$dir" && find . | cpio --quiet -o -H newc) >"$initrd.new"
	rm -rf "$dir" "$build/vm/initrd-$kernel-"*[0-9a-f]
	mv "$initrd.new" "$initrd"
}

# Some machines offer /dev/kvm, but a guest hangs in it: only a boot tells.
# The answer holds until this machine boots again.
probe_kvm() {
	local boot cache=$build/vm/kvm

	[ -w /dev/kvm ] || { echo tcg; return; }
	boot=$(</proc/sys/kernel/random/boot_id)
	if [ "$(sed -n 1p "$cache" 2>/dev/null)" != "$boot" ]; then
		say "trying whether a machine boots under KVM"
		local works=tcg
		if "$0" --accel kvm --kernel "$kernel" --timeout 15 --mem 512 \
			--out /dev/null -- true >/dev/null 2>&1; then
			works=kvm
		fi
		printf '%s\n%s\n' "$boot" "$works" >"$cache.new"
		mv "$cache.new" "$cache"
	fi
	sed -n 2p "$cache"
}

mkdir -p "$build/vm" "$build/vm-out" "$build/vm-logs"
exec 9>"$build/vm/.lock-$kernel"
flock 9
install_module
make_initrd
exec 9>&-

if [ -z "$accel" ]; then
	exec 9>"$build/vm/.lock-kvm"
	flock 9
	accel=$(probe_kvm)
	exec 9>&-
fi
case $accel in
kvm) machine=(-accel kvm -cpu host) ;;
tcg)
	# This CPU has none of the string instructions that are slow in
	# emulation; random numbers from the start save the boot some time.
	machine=(-accel "tcg,thread=multi,tb-size=512" -cpu "Nehalem,+rdrand")
	;;
*) die "no such accelerator: $accel" ;;
esac

run=
qemu=
fsd=
# shellcheck disable=SC2317 # called by trap
cleanup() {
	local pid

	for pid in $qemu $fsd; do
		kill "$pid" 2>/dev/null || true
	done
	[ -z "$run" ] || rm -rf "$run"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

cmdline="console=ttyS0 quiet panic=-1 oops=panic log_buf_len=8M"
cmdline+=" mitigations=off init_on_alloc=0 net.ifnames=0"
cmdline+=" random.trust_cpu=on cryptomgr.notests no_timer_check"
# a CPU that is stuck stays so, and the tests with it
cmdline+=" softlockup_panic=1 $append"

# The host's files by virtiofs: what it caches it need not ask for again,
# which makes starting a program several times cheaper than by 9p.
start_virtiofsd() {
	/usr/lib/qemu/virtiofsd --socket-path="$run/fs.sock" -o source=/ \
		-o cache=always -o sandbox=chroot \
		</dev/null >"$run/virtiofsd.log" 2>&1 &
	fsd=$!
	for _ in {1..200}; do
		[ ! -S "$run/fs.sock" ] || return 0
		kill -0 "$fsd" 2>/dev/null || break
		sleep 0.05
	done
	cat "$run/virtiofsd.log" >&2
	die "virtiofsd does not start"
}

# Nobody loads the driver of a card unless he wants it.
#
# plug ADDRESS NETDEV[,OPTION]...
cables=()
plug() {
	local id=n${1//:/}

	cables+=(
		-netdev "$2,id=$id"
		-device "virtio-net-pci,netdev=$id,mac=$1,romfile="
	)
}

# Cables for a rack of network cards rather than veth (selftests/lib/rack.sh):
# each a hub with two ports, told apart by their addresses.  Or the one of the
# PS's host leads to another machine: the switch's end listens.
case $cable in
'')
	for host in 01 02 fe; do
		plug "02:00:00:00:00:$host" "hubport,hubid=$((16#$host))"
		plug "02:01:00:00:00:$host" "hubport,hubid=$((16#$host))"
	done
	;;
listen:*)
	plug 02:01:00:00:00:fe \
		"stream,server=on,addr.type=unix,addr.path=${cable#*:}"
	;;
connect:*)
	plug 02:00:00:00:00:fe \
		"stream,server=off,addr.type=unix,addr.path=${cable#*:}"
	;;
*) die "no such end of a cable: $cable" ;;
esac

# boot COMMAND...: one life of the machine. Sets $ended, QEMU's exit status,
# $late, whether its time was up, and $log, the kernel log; $run/status is
# there if the command ended.
boot() {
	local start=$SECONDS tee share=local,security_model=none,multidevs=remap

	run=$(mktemp -d "$build/vm/run.XXXXXX")
	cp "$here/guest.sh" "$run/"
	echo "$top" >"$run/top"
	echo "$root" >"$run/kernel"
	{
		printf '%q ' "$@"
		echo
	} >"$run/command"

	start_virtiofsd
	exec 8> >(exec tee "$run/output")
	tee=$!
	# If this script is killed, so is the machine.
	setpriv --pdeathsig TERM timeout -k 5 "$limit" \
		qemu-system-x86_64 -M q35 "${machine[@]}" \
		-smp "$cpus" -m "$mem" \
		-nodefaults -no-user-config -no-reboot -display none -nic none \
		-serial "file:$run/console" \
		-device virtio-serial-pci \
		-chardev "file,id=out,path=/dev/stdout" \
		-device virtserialport,chardev=out,name=out \
		-device virtio-rng-pci \
		-object "memory-backend-memfd,id=mem,size=${mem}M,share=on" \
		-numa node,memdev=mem \
		-chardev "socket,id=fs,path=$run/fs.sock" \
		-device vhost-user-fs-pci,chardev=fs,tag=hostroot \
		"${cables[@]}" \
		-virtfs "$share,path=$run,mount_tag=vmrun" \
		-virtfs "$share,path=$build/vm-out,mount_tag=vmout" \
		-kernel "$root/vmlinuz" -initrd "$initrd" -append "$cmdline" \
		</dev/null >&8 2>"$run/qemu.err" &
	qemu=$!
	exec 8>&-
	ended=0
	wait "$qemu" 2>/dev/null || ended=$?
	qemu=
	# QEMU may crash on being ended: trust the clock, not the status.
	late=
	[ $((SECONDS - start)) -lt "$limit" ] || late=1
	kill "$fsd" 2>/dev/null || true
	wait "$fsd" || true
	fsd=
	wait "$tee" || true

	# Without its last words there is what it wrote to the console.
	log=$run/console
	[ ! -s "$run/dmesg" ] || log=$run/dmesg
}

# QEMU before 8.1 may run a stale copy of code that another CPU has just
# patched: the guest meets a breakpoint that is no longer there and dies.
# Nothing but live patching of kernel text, by the kernel itself, leads there.
# Or it finds that the breakpoint is gone and tries again, with the same copy, for
# ever: a CPU that is stuck at an instruction that only goes on, as a branch
# does that the kernel patches (static keys: jmp, nop).  What the module is stuck at
# is its own fault.
# Nor is it the guest's fault when the emulator crashes.
emulator_fault() {
	[ "$accel" = tcg ] && [ -z "$late" ] && [ ! -s "$run/status" ] ||
		return 1
	[ "$ended" -lt 128 ] || return 0
	stuck_at_a_branch && return 0
	grep -m 1 -E 'Oops|BUG:|WARNING:|\[#1\]' "$log" |
	grep -q 'int3: 0000 \[#1\]'
}

stuck_at_a_branch() {
	grep -q 'Kernel panic - not syncing: softlockup' "$log" &&
	! grep -m 1 'RIP: 0010:' "$log" | grep -q '\[atp\]' &&
	grep -m 1 -A 1 'RIP: 0010:' "$log" |
	grep -E '<eb>|<e9>|<66> 90|<0f> 1f 44 00 00' |
	grep -q -v '<eb> fe'	# to itself
}

for attempt in 1 2 3 4; do
	boot "$@"
	if [ "$attempt" -eq 4 ] || ! emulator_fault; then
		break
	fi
	say "a fault of the emulator, not of the kernel: booting again" \
		"$(grep -m 1 -o 'RIP: .*' "$log")"
	rm -rf "$run"
done

if [ "$out" != /dev/null ]; then
	[ -n "$out" ] || out=$build/vm-logs/$kernel.log
	{
		cat "$run/output"
		echo "==== kernel log ===="
		cat "$log"
	} >"$run/all"
	mv "$run/all" "$out"
fi

status=125
if [ -s "$run/status" ]; then
	status=$(<"$run/status")
elif [ -n "$late" ]; then
	say "TIMEOUT after $limit s"
	status=124
else
	say "the machine went down before the command ended"
	cat "$run/qemu.err" >&2
fi
if [ ! -s "$run/status" ]; then
	tail -n 40 "$run/console" >&2 2>/dev/null || true
fi

# A warning may have left the log by now, but not the taint: bad page,
# died, warned, soft lockup, machine check.
tainted=0
[ ! -s "$run/tainted" ] || tainted=$(<"$run/tainted")
if ! "$here/splat.sh" "$log" >"$run/splat"; then
	say "SPLAT in the log of kernel $release:"
	cat "$run/splat" >&2
	[ "$status" -ne 0 ] || status=97
elif [ $((tainted & (1 << 4 | 1 << 5 | 1 << 7 | 1 << 9 | 1 << 14))) -ne 0 ]; then
	say "SPLAT: the kernel is tainted ($tainted), though its log is clean"
	[ "$status" -ne 0 ] || status=97
fi
exit "$status"
