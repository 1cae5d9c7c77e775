#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A debug kernel is built once, and again if what it is made of has changed:
# build-kernel.sh in a tree where source and compiler take no time.

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=../vm/tap.sh
. "$here/../vm/tap.sh"

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
debug=$tree/selftests/debug
kernel=$tree/build/kernels/kasan

# What the script wants to find in the kernel's source
make_source() {
	local src=$tree/build/linux-source-6.1 file

	mkdir -p "$src"/{include,scripts} "$src"/arch/{um,x86}/include
	mkdir -p "$src"/arch/x86/um/asm
	for file in arch/um/Kconfig arch/x86/um/Makefile \
		arch/x86/net/bpf_jit_comp.c kernel/bpf/core.c \
		drivers/net/veth.c lib/Kconfig.debug; do
		mkdir -p "$src/$(dirname "$file")"
		touch "$src/$file"
	done
}

# The whole of what deps.sh and make are asked for
make_tools() {
	cat >"$tree/selftests/deps.sh" <<-'EOF'
	#!/bin/sh
	[ "$1" != source-version ] || cat "${0%/*}/../version"
	EOF
	mkdir "$tree/bin"
	cat >"$tree/bin/make" <<-'EOF'
	#!/bin/sh
	# -C DIR, with or without -s before it, is where it works
	[ "$1" != -s ] || shift
	[ "$1" != -C ] || cd "$2" || exit 1
	for word; do
		case $word in
		O=*) out=${word#O=} ;;
		INSTALL_MOD_PATH=*) to=${word#INSTALL_MOD_PATH=} ;;
		allnoconfig) cp "$out/asked.config" "$out/.config" ;;
		bzImage)
			mkdir -p arch/x86/boot arch/x86/include include scripts
			touch arch/x86/boot/bzImage Module.symvers
			;;
		kernelrelease) echo 6.1.0-test ;;
		modules_install) mkdir -p "$to/lib/modules/6.1.0-test" ;;
		esac
	done
	EOF
	chmod +x "$tree/selftests/deps.sh" "$tree/bin/make"
}

build() {
	PATH=$tree/bin:$PATH "$debug/build-kernel.sh" kasan >"$tree/log" 2>&1 ||
		{
			cat "$tree/log"
			return 1
		}
}

# Is it another one than before?
builds() {
	local before

	before=$(stat -c %i "$kernel" 2>/dev/null)
	build && grep -q 'kasan: building' "$tree/log" &&
		[ "$(stat -c %i "$kernel")" != "$before" ] &&
		[ "$(<"$kernel/release")" = 6.1.0-test ]
}

keeps() {
	local before

	before=$(stat -c '%i %Z' "$kernel")
	build && [ ! -s "$tree/log" ] &&
		[ "$(stat -c '%i %Z' "$kernel")" = "$before" ]
}

# One that is not complete is not taken for one that is.
interrupted() {
	echo '# yet another' >>"$debug/configs/kasan.config"
	sed -i 's/bzImage)/bzImage) exit 1/' "$tree/bin/make"
	if build >"$tree/said" || ! grep 'does not build' "$tree/said"; then
		return 1
	fi
	sed -i 's/bzImage) exit 1/bzImage)/' "$tree/bin/make"
	builds
}

mkdir -p "$debug" "$tree/userspace/bench/uml"
cp -r "$here/configs" "$here/build-kernel.sh" "$debug/"
touch "$tree/userspace/bench/uml/bpf_jit.c"
echo 1 >"$tree/version"
make_source
make_tools

plan 7
check "it is built" builds
check "it is kept" keeps
echo '# another' >>"$debug/configs/base.config"
check "a change of the common configuration builds another" builds
echo '# another' >>"$debug/configs/kcsan.config"
check "a change of another kernel's does not" keeps
echo 2 >"$tree/version"
check "a new version of the source builds another" builds
check "a build that ended early is begun again" interrupted
check "and then is kept" keeps
finish
