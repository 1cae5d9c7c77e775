#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Build kernels that find bugs, from Debian's linux-source-6.1, into
# build/kernels/NAME/ in the form that vm/run-vm.sh boots and that modules are
# built against. What is there already from the same source, configuration and
# script is kept. "uml" is User-mode Linux for the benchmark: a program.
#
# usage: build-kernel.sh NAME...	NAME: a file of configs/ besides base; uml

set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
build=$top/build
src=$build/linux-source-6.1
uml=$top/userspace/bench/uml

say() {
	printf '  %-7s %s\n' KERNEL "$*" >&2
}

# Sets what the rest goes by: the kernel's architecture, the folder of that
# name's own parts, what its configuration is made of, and code of ours.
choose() {
	case $1 in
	uml)
		arch=um
		configs=("$uml/kernel.config")
		parts=("$uml/bpf_jit.c")
		targets=(linux modules)
		image=vmlinux
		;;
	*)
		arch=x86_64
		configs=("$here/configs/base.config" "$here/configs/$1.config")
		parts=()
		targets=(bzImage modules)
		image=arch/x86/boot/bzImage
		;;
	esac
}

# What goes into a kernel: anything else gives another one.
key() {
	local version

	version=$("$here/../deps.sh" source-version)
	{
		echo "$version"
		cat "$here/build-kernel.sh" "${configs[@]}" "${parts[@]}"
		gcc --version
	} | sha256sum | cut -c 1-32
}

# missing ASKED GOT: what was asked for and is not there. A dependency that is
# not met drops an option without a word.
missing() {
	grep -E '^(CONFIG_|# CONFIG_.* is not set)' "$1" | sort -u |
		comm -23 - <(sort "$2")
}

# User-mode Linux has no compiler for BPF; x86-64's makes code for it as well, but
# for loads that may fault, of which there it has no table.  What else that file
# wants is in bpf_jit.c.  The code must be near the kernel's, where modules are not.
give_jit() {
	local um=$src/arch/x86/um

	sed -e '/^#include <asm/d' -e '/ex->data = /d' \
		-e '/^bool ex_handler_bpf/,/^}/d' \
		"$src/arch/x86/net/bpf_jit_comp.c" >"$um/bpf_jit_comp.h"
	cp "$uml/bpf_jit.c" "$um/"
	grep -q bpf_jit "$um/Makefile" ||
		sed -i '/^USER_OBJS/i\
obj-y += bpf_jit.o' "$um/Makefile"
	grep -q EBPF_JIT "$src/arch/um/Kconfig" ||
		sed -i '/^config UML$/a\
	select HAVE_EBPF_JIT\
	select ARCH_WANT_DEFAULT_BPF_JIT' "$src/arch/um/Kconfig"
	sed -i -e 's/ptr = module_alloc(/ptr = bpf_jit_alloc_exec(/' \
		-e 's/module_memfree(\(hdr\|pack->ptr\));/bpf_jit_free_exec(\1);/' \
		"$src/kernel/bpf/core.c"
}

# Failing allocations of one call site works on x86-64, too; Linux has offered it
# there since 6.3.  User-mode Linux does not say what the machine can that it runs
# on, and is slower than it need be; the switch's program does not load.  There a
# veth that can be polled is, also for what comes from a sender with segmentation
# offload, so that what either end does is known by itself (bench/uml/cards.py).
allow_options() {
	grep -q INT128 "$src/arch/um/Kconfig" ||
		sed -i '/^config UML$/a\
	select ARCH_SUPPORTS_INT128\
	select HAVE_EFFICIENT_UNALIGNED_ACCESS' "$src/arch/um/Kconfig"
	grep -q CONFIG_UML "$src/drivers/net/veth.c" ||
		sed -i '/^static bool veth_skb_is_eligible_for_gro/,/^}/ {
			s/return !/return IS_ENABLED(CONFIG_UML) || !/
		}' "$src/drivers/net/veth.c"
	sed -i '/^config FAULT_INJECTION_STACKTRACE_FILTER$/,/^$/ {
		/depends on !X86_64$/d
	}' "$src/lib/Kconfig.debug"
}

configure() {
	local name=$1 out=$2 lost

	cat "${configs[@]}" >"$out/asked.config"
	make -s -C "$src" O="$out" ARCH=$arch \
		KCONFIG_ALLCONFIG="$out/asked.config" allnoconfig
	make -s -C "$out" ARCH=$arch olddefconfig
	lost=$(missing "$out/asked.config" "$out/.config")
	[ -z "$lost" ] || {
		say "$name: not in the configuration that came out:"
		echo "$lost" >&2
		return 1
	}
}

# One line of many, so that one sees it move.
progress() {
	local name=$1 n=0 line

	while read -r line; do
		n=$((n + 1))
		[ $((n % 200)) -ne 0 ] ||
			say "$name: $n steps in $SECONDS s, now ${line##* }"
	done
}

compile() {
	local name=$1 out=$2 log=$build/kernel-$1.log

	make -C "$out" ARCH=$arch -j"$(nproc)" "${targets[@]}" 2>&1 |
		tee "$log" | progress "$name" || {
		grep -m 20 -B 2 -A 10 -E '(error|Error)' "$log" >&2 ||
			tail -n 20 "$log" >&2
		say "$name: does not build, output in ${log#"$top"/}"
		return 1
	}
}

# What external modules need, from source and output laid over each other, so
# that it works wherever the folder is copied to.
install_headers() {
	local out=$1 kdir=$2

	mkdir -p "$kdir"
	(
		cd "$src"
		find . arch/um arch/x86 -maxdepth 1 -name 'Makefile*'
		find include scripts arch/{um,x86}/include arch/x86/um \
			-type f -o -type l
		find arch/x86 -name Kbuild.platforms -o -name Platform
	) | rsync -a --files-from=- "$src/" "$kdir/"
	(
		cd "$out"
		find arch/*/include include scripts -type f
		echo Module.symvers
		echo .config
		[ ! -e tools/objtool/objtool ] || echo tools/objtool/objtool
	) | rsync -a --files-from=- "$out/" "$kdir/"
}

install_kernel() {
	local name=$1 out=$2 dir=$build/kernels/$1 new release

	new=$(mktemp -d "$build/kernel.XXXXXX")
	release=$(make -s -C "$out" ARCH=$arch kernelrelease)
	make -s -C "$out" ARCH=$arch INSTALL_MOD_PATH="$new" modules_install
	rm -f "$new/lib/modules/$release"/{build,source}
	case $arch in
	um) strip --strip-debug -o "$new/vmlinuz" "$out/$image" ;;
	*) cp "$out/$image" "$new/vmlinuz" ;;
	esac
	install_headers "$out" "$new/kdir"
	ln -s ../../../kdir "$new/lib/modules/$release/build"
	key "$name" >"$new/key"
	echo "$release" >"$new/release"
	chmod 755 "$new"
	rm -rf "$dir"
	mv "$new" "$dir"
}

build_kernel() {
	local name=$1 out=$build/linux-$1

	choose "$name"
	[ "$(cat "$build/kernels/$name/key" 2>/dev/null)" != "$(key "$name")" ] ||
		return 0
	SECONDS=0
	"$here/../deps.sh" source
	allow_options
	give_jit
	say "$name: building, some minutes"
	rm -rf "$out"
	mkdir -p "$out" "$build/kernels"
	configure "$name" "$out"
	compile "$name" "$out"
	install_kernel "$name" "$out"
	# more than a gigabyte, most of it debugging information
	rm -rf "$out"
	say "$name: $(<"$build/kernels/$name/release") built in $SECONDS s"
}

[ $# -gt 0 ] || {
	sed -n '3,/^$/s/^# \{0,1\}//p' "$0" >&2
	exit 2
}
mkdir -p "$build"
exec 9>"$build/.debug-kernels.lock"
flock 9
for name in "$@"; do
	if [ "$name" != uml ] && { [ "$name" = base ] ||
	   [ ! -e "$here/configs/$name.config" ]; }; then
		say "no configs/$name.config"
		exit 2
	fi
	build_kernel "$name"
done
