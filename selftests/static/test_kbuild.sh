#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Does the module build without a warning: gcc and clang with W=1, sparse with
# byte-order checks?  Does it keep to the processor's ordinary registers?

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

# by_fpu WHERE: objects that use its registers, and for more than one number at
# a time
by_fpu() {
	find "$1/kernel" -name '*.o' | while read -r object; do
		objdump -d "$object" | grep -q '%xmm' || continue
		echo "${object#"$1"/}" "$(objdump -d "$object" |
			grep -oE '\<(mulpd|divpd|paddd)\>' | sort -u |
			paste -s -d ' ')"
	done | sort
}

# fpu KERNEL: only the files that are entered after atp_fpu_begin() have any, and
# they have vectors
fpu() {
	local found due="kernel/engine/lanes_fpu.o paddd
kernel/engine/quantise_fpu.o divpd mulpd"

	found=$(by_fpu "build/static/gcc-$1")
	echo "$found"
	[ "$found" = "$due" ]
}

plan $((4 * ${#kernels[@]}))
for kernel in "${kernels[@]}"; do
	check "gcc W=1, Linux $kernel" kbuild gcc "$kernel" W=1 KCFLAGS=-Werror
	check "floating point in its place, Linux $kernel" fpu "$kernel"
	check "clang W=1, Linux $kernel" kbuild clang "$kernel" W=1 \
		KCFLAGS=-Werror CC="$top/selftests/static/clang-kbuild" \
		CONFIG_CC_IS_GCC= CONFIG_CC_IS_CLANG=y CONFIG_OBJTOOL=
	# C=2 looks at every file, compiled just now or not
	check "sparse, Linux $kernel" kbuild gcc "$kernel" \
		C=2 CF=-D__CHECK_ENDIAN__
done
finish
