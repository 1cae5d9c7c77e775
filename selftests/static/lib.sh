#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Sourced: what the static checks share. Leaves the caller at the top of the
# sources.

cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
top=$PWD
# shellcheck source=../vm/tap.sh
. selftests/vm/tap.sh
# shellcheck disable=SC2034 # for who sources this
scripts=$top/build/linux-scripts

kernels=()
for dir in build/kernels/*/kdir; do
	dir=${dir%/kdir}
	# Debian's own, not those for debugging
	[ -e "$dir/key" ] || kernels+=("${dir##*/}")
done

# sources PATTERN...: files of the project, new ones included, that are there;
# without git (a tarball) all but the output
sources() {
	local file

	if [ -e .git ]; then
		git -c safe.directory='*' ls-files --cached --others \
			--exclude-standard -- "$@"
	else
		local pattern args=()
		for pattern; do
			args+=(-o -path "./$pattern")
		done
		find . -path ./build -prune -o -type f \
			\( -false "${args[@]}" \) -print | sed 's|^\./||'
	fi | sort -u | while read -r file; do
		[ ! -f "$file" ] || echo "$file"
	done
}

# shell_scripts: by what they say in their first line
shell_scripts() {
	sources '*' | while read -r file; do
		# shellcheck disable=SC2094 # it is only read
		read -r line <"$file" 2>/dev/null
		[[ $line =~ ^#!.*[/\ ](ba)?sh ]] && echo "$file"
	done 2>/dev/null
}

# kbuild NAME KERNEL [ARG]...: build the module in a folder of its own, print
# what the compiler says, fail if that is anything
kbuild() {
	local dir=$top/build/static/$1-$2 kdir=$top/build/kernels/$2/kdir output

	shift 2
	mkdir -p "$dir"
	rsync -a --delete --prune-empty-dirs --include='*/' \
		--include='*.[chS]' --include=Kbuild --exclude='*' \
		Kbuild kernel uapi "$dir/"
	output=$(make -s --no-print-directory -C "$kdir" M="$dir" -j2 \
		CONFIG_DEBUG_INFO_BTF_MODULES= "$@" modules 2>&1) || {
		echo "$output"
		return 1
	}
	echo "$output"
	[ -z "$output" ]
}
