#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# "make install" and "make install-ip-atp" below a folder, for a kernel that does
# not run: what they leave there.

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

top=$PWD
kernel=$top/build/kernels/6.1
dest=$(mktemp -d)
trap 'rm -rf "$dest"' EXIT
local=$dest/usr/local

# make_there TARGET: as typed, whatever make has started this
make_there() {
	env -u MAKEFLAGS -u MAKELEVEL make -j2 "$1" \
		KDIR="$kernel/kdir" DESTDIR="$dest"
}

# there FILE...: not empty, and for all to read
there() {
	local file missing=0

	for file; do
		if [ ! -s "$file" ] || (($(stat -Lc 0%a "$file") % 8 < 4)); then
			echo "no $file"
			missing=1
		fi
	done
	return "$missing"
}

# man_pages: where each of Documentation/man has to be
man_pages() {
	local page

	for page in Documentation/man/*; do
		echo "$local/share/man/man${page##*.}/${page##*/}"
	done
}

# function_pages: links, one for each function of libatp
function_pages() {
	sed -n "s|^\t\(atp_[a-z_]*\);|$local/share/man/man3/\1.3|p" \
		userspace/lib/libatp.map
}

# module: one, for that kernel
module() {
	local found

	found=$(find "$dest/lib/modules/$(<"$kernel/release")" -name atp.ko)
	modinfo -F vermagic "$found" | grep -F "$(<"$kernel/release") "
}

check "make install" make_there install
check "atp.ko for the kernel of KDIR" module
mapfile -t headers < <(cd uapi && echo linux/*.h | tr ' ' '\n')
check "headers" there "${headers[@]/#/$local/include/}" "$local/include/atp.h"
mapfile -t pages < <(man_pages)
check "man pages" there "${pages[@]}"
mapfile -t functions < <(function_pages)
check "links to libatp(3)" there "${functions[@]}"
check "the library" there \
	"$local"/lib/{libatp.a,libatp.so.?*,pkgconfig/libatp.pc}
check "the Python module" there \
	"$local"/lib/python3*/dist-packages/atp/{__init__,torch}.py
completion=$local/share/bash-completion/completions/atp
check "completion" there "$completion"
# shellcheck disable=SC2016 # for the other shell
check "bash takes it" run 0 '^complete .* atp$' \
	bash -c '. "$1" && complete -p atp' bash "$completion"
check "the dissector and the dashboard" there \
	"$local"/share/atp/{atpgrad.lua,grafana.json}
check "the tool runs" run 0 '^Usage: atp ' "$local/sbin/atp" check help
check "make install-ip-atp" make_there install-ip-atp
check "that ip runs, with atp" run 0 '^Usage: atp ' "$local/sbin/ip" atp help
end
