#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Build the debug kernels and run on them what runs in the virtual machine.
# Says at the end how long that took.
#
# usage: check.sh NAME...	debug kernels; arguments of run.sh in ARGS

set -u

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
report=()

# lap WHAT COMMAND...: keep the time that it took
lap() {
	local what=$1 start=$SECONDS status=0

	shift
	"$@" || status=$?
	report+=("$(printf '%5d s  %s' $((SECONDS - start)) "$what")")
	return "$status"
}

failed=0
lap "building the kernels" "$here/build-kernel.sh" "$@" || exit 1
lap "building what is tested" make --no-print-directory -C "$top" \
	VM_KERNELS="$*" vm-modules userspace || failed=1
# their machines run at the same time, and share the tests
kernels=()
for name; do
	kernels+=(--kernel "$name")
done
# shellcheck disable=SC2086 # words
lap "tests on $*" "$here/../run.sh" --vm "${kernels[@]}" ${ARGS-} || failed=1

echo
echo "  check-debug took $SECONDS s:"
printf '  %s\n' "${report[@]}"
exit "$failed"
