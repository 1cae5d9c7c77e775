#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Does the module build without a warning: gcc and clang with W=1, sparse with
# byte-order checks?

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

plan $((3 * ${#kernels[@]}))
for kernel in "${kernels[@]}"; do
	check "gcc W=1, Linux $kernel" kbuild gcc "$kernel" W=1 KCFLAGS=-Werror
	check "clang W=1, Linux $kernel" kbuild clang "$kernel" W=1 \
		KCFLAGS=-Werror CC="$top/selftests/static/clang-kbuild" \
		CONFIG_CC_IS_GCC= CONFIG_CC_IS_CLANG=y CONFIG_OBJTOOL=
	# C=2 looks at every file, compiled just now or not
	check "sparse, Linux $kernel" kbuild gcc "$kernel" \
		C=2 CF=-D__CHECK_ENDIAN__
done
finish
