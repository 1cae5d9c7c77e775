#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Are the comments that document the kernel's code complete and well-formed?

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

mapfile -t files < <(sources 'kernel/*.c' 'kernel/*.h' 'uapi/*.h')
plan ${#files[@]}
for file in "${files[@]}"; do
	check "kernel-doc: $file" "$scripts/kernel-doc" -none -Werror "$file"
done
finish
