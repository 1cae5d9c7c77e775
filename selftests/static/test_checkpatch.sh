#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Kernel style, as strict as checkpatch knows it, at 80 columns.

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

# Not for anybody:
#  CAMELCASE		the header's fields have the names the paper gives them
#  COMPLEX_MACRO	lists that are written once, for an enum and its names
#  LINUX_VERSION_CODE	kernel/compat/ is there for nothing else
#  LONG_LINE_STRING	messages stay whole, so that they can be searched for
#  UNCOMMENTED_DEFINITION  kernel-doc above the struct says what a lock covers
ignore=CAMELCASE,COMPLEX_MACRO,LINUX_VERSION_CODE,CONSTANT_COMPARISON
ignore+=,LONG_LINE_STRING,UNCOMMENTED_DEFINITION
# Only in the kernel, where the macro or the habit is:
user=$ignore,PREFER_DEFINED_ATTRIBUTE_MACRO,PREFER_KERNEL_TYPES,NEW_TYPEDEFS
user+=,BIT_MACRO,ARRAY_SIZE,AVOID_EXTERNS,VOLATILE,STRCPY,STRNCPY
user+=,EMBEDDED_FUNCTION_NAME,USE_NEGATIVE_ERRNO,MACRO_WITH_FLOW_CONTROL
user+=,MACRO_ARG_REUSE,MACRO_ARG_PRECEDENCE
# Nobody searches the log for what a test explains.
user+=,SPLIT_STRING
# The kernel's own trace headers are written like this throughout.
trace=$ignore,OPEN_ENDED_LINE,PARENTHESIS_ALIGNMENT,MACRO_ARG_REUSE
trace+=,SPACING,TRAILING_SEMICOLON,LINE_SPACING

said=$(mktemp)
trap 'rm -f "$said"' EXIT

# look TYPES FILE...: at all of them in one run, as it reads long lists first
look() {
	local status=0

	"$scripts/checkpatch.pl" --no-tree --strict \
		--max-line-length=80 --show-types --terse --no-summary \
		--ignore "$1" -f "${@:2}" >>"$said" || status=$?
	# 1: it has found something; anything else: it has not looked
	[ "$status" -le 1 ]
}

# style FILE: what was said of it
style() {
	# X is the macro that a list is given, to apply to each of its items.
	! grep "^$1:" "$said" |
		grep -v "MACRO_ARG_REUSE: Macro argument reuse 'X'"
}

mapfile -t files < <(sources '*.c' '*.h')
mapfile -t ours < <(printf '%s\n' "${files[@]}" |
	grep -E '^(kernel|uapi)/' | grep -v '^kernel/trace.h$')
mapfile -t others < <(printf '%s\n' "${files[@]}" |
	grep -v -E '^(kernel|uapi)/')
plan $((3 + ${#files[@]}))
check "checkpatch looks at trace points" look "$trace" kernel/trace.h
check "checkpatch looks at the kernel's files" look "$ignore" "${ours[@]}"
check "checkpatch looks at all others" look "$user" "${others[@]}"
for file in "${files[@]}"; do
	check "checkpatch: $file" style "$file"
done
finish
