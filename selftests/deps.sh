#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Install what building and testing needs: Debian packages only. Besides,
# unpack Debian's stock kernels with their headers into build/kernels/<series>/,
# the maintainers' scripts of linux-source into build/linux-scripts/, and
# Prometheus' promtool into build/promtool/.
# Nothing is installed into /boot or /lib/modules. With nothing to do it
# returns at once.
#
# usage: deps.sh [build|check|deb|source|source-version]
#
# What to provide for; default: check. "deb" is for building packages. "source"
# unpacks the source that kernels for debugging are built from into
# build/linux-source-6.1/, "source-version" says which that would be.

set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
build=$top/build
what=${1:-check}

# Compilers, libraries, the virtual machine, the demo, iproute2's build.
packages=(
	bc bison flex gcc gcc-12 libc6-dev linux-libc-dev make
	clang-14 clang llvm-14 llvm bpftool
	libbpf-dev libncurses-dev libxdp-dev libmnl-dev libelf-dev zlib1g-dev libcap-dev
	pkg-config dpkg-dev cpio kmod rsync xz-utils
	busybox-static qemu-system-x86 qemu-system-common
	ethtool iproute2 iputils-ping procps util-linux
	python3 python3-numpy python3-sklearn python3-yaml
)
# The checks.
if [ "$what" = check ]; then
	packages+=(bpftrace git libclang-rt-14-dev liburing-dev linux-perf
		mandoc mmdebstrap openmpi-bin perl python3-matplotlib python3-scapy
		python3-torch shellcheck sparse tshark xdp-tools yamllint)
fi
# Debian packages.
if [ "$what" = check ] || [ "$what" = deb ]; then
	packages+=(build-essential debhelper dh-dkms dh-python lintian
		libgloo-dev libopenmpi-dev)
fi
# A kernel with type information.
if [ "$what" = source ]; then
	packages+=(perl dwarves)
fi

# The stock kernels of the test matrix, by the package that names the newest.
kernels=(6.1:linux-image-amd64 6.12:linux-image-6.12-amd64)

say() {
	printf '  %-7s %s\n' DEPS "$*" >&2
}

as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	else
		sudo "$@"
	fi
}

# Every apt call waits for another one's lock instead of failing.
apt() {
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq \
		-o DPkg::Lock::Timeout=900 -o Dpkg::Use-Pty=0 \
		-o Acquire::Retries=3 "$@" </dev/null
}

updated=
apt_update() {
	[ -z "$updated" ] || return 0
	say "refreshing the package lists"
	apt update
	updated=1
}

# The lists may be absent (a fresh container) or name versions that the
# mirror has dropped since: refresh them once and try again.
apt_try() {
	compgen -G '/var/lib/apt/lists/*Packages*' >/dev/null || apt_update
	apt "$@" && return
	[ -z "$updated" ] || return 1
	apt_update
	apt "$@"
}

install_packages() {
	local missing

	missing=$({
		printf '%s\n' "${packages[@]}"
		# the second copy of a name that is installed cancels the first
		dpkg-query -W -f '${db:Status-Status} ${Package}\n' \
			"${packages[@]}" 2>/dev/null |
			sed -n 's/^installed //p'
	} | sort | uniq -u) || true
	[ -n "$missing" ] || return 0
	say "installing $(echo "$missing" | tr '\n' ' ')"
	# shellcheck disable=SC2086 # a list of package names
	apt_try install --no-install-recommends -y $missing \
		>"$build/deps.log" 2>&1 || {
		tail -n 20 "$build/deps.log" >&2
		return 1
	}
}

# fetch DIR PACKAGE...: download and unpack packages below DIR
fetch() {
	local dir=$1 debs

	shift
	debs=$(mktemp -d "$build/debs.XXXXXX")
	# apt's own download user cannot write below a private directory
	(cd "$debs" && apt_try -o APT::Sandbox::User=root download "$@")
	for deb in "$debs"/*.deb; do
		dpkg-deb -x "$deb" "$dir"
	done
	rm -rf "$debs"
}

# depends PACKAGE PATTERN: what it depends on by that pattern
depends() {
	apt-cache depends --important "$1" |
		sed -n 's/^[ |]*Depends: //p' | grep -E "$2"
}

fetch_kernel() {
	local series=${1%%:*} meta=${1#*:} dir rel headers image new

	dir=$build/kernels/$series
	[ ! -e "$dir/release" ] || return 0
	say "fetching Debian's $series kernel and its headers"
	compgen -G '/var/lib/apt/lists/*Packages*' >/dev/null || apt_update
	image=$(depends "$meta" '^linux-image-')
	rel=${image#linux-image-}
	headers=linux-headers-$rel

	new=$(mktemp -d "$build/kernel.XXXXXX")
	# shellcheck disable=SC2046 # a list of package names
	fetch "$new" "$image" "$headers" \
		$(depends "$headers" '^linux-(headers-.*-common|kbuild-)')
	say "unpacking Debian's $series kernel"
	# Uncompressed modules load faster in an emulated machine.
	find "$new/lib/modules" -name '*.ko.xz' -print0 |
		xargs -0 -r -n 64 -P "$(nproc)" xz -d
	mkdir -p "$build/kernels"
	rm -rf "$dir"
	# The headers name their common part by an absolute path; a relative
	# one survives here and in a checkout that moves.
	# shellcheck disable=SC2016 # for make to expand
	sed -i 's|/usr/src/|$(dir $(lastword $(MAKEFILE_LIST)))../|' \
		"$new/usr/src/$headers/Makefile"
	ln -sfn "../../../usr/src/$headers" "$new/lib/modules/$rel/build"
	ln -s "usr/src/$headers" "$new/kdir"
	ln -s "boot/vmlinuz-$rel" "$new/vmlinuz"
	rm -rf "${new:?}"/{boot/System.map*,usr/share,lib/modules/*/source}
	depmod -b "$new" "$rel"
	echo "$rel" >"$new/release"
	chmod 755 "$new"
	mv "$new" "$dir"
}

# checkpatch and friends are in no package but the source of the kernel.
fetch_scripts() {
	local dir=$build/linux-scripts new

	[ ! -e "$dir/checkpatch.pl" ] || return 0
	say "fetching the scripts of linux-source-6.1"
	new=$(mktemp -d "$build/source.XXXXXX")
	fetch "$new" linux-source-6.1
	say "unpacking the scripts of linux-source-6.1"
	# reading stops at the first copy of each
	tar -xJf "$new/usr/src/linux-source-6.1.tar.xz" -C "$new" \
		--strip-components=2 --occurrence=1 \
		linux-source-6.1/scripts/{checkpatch.pl,const_structs.checkpatch} \
		linux-source-6.1/scripts/{kernel-doc,spelling.txt}
	rm -rf "$dir" "${new:?}/usr"
	chmod 755 "$new"
	mv "$new" "$dir"
}

# promtool alone: the package also has a server that would be started.
fetch_promtool() {
	local dir=$build/promtool new

	[ ! -e "$dir/promtool" ] || return 0
	say "fetching promtool"
	new=$(mktemp -d "$build/promtool.XXXXXX")
	fetch "$new" prometheus
	mkdir -p "$dir"
	mv "$new/usr/bin/promtool" "$dir/promtool"
	rm -rf "$new"
}

source_version() {
	compgen -G '/var/lib/apt/lists/*Packages*' >/dev/null || apt_update
	apt-cache show --no-all-versions linux-source-6.1 |
		sed -n 's/^Version: //p'
}

fetch_source() {
	local dir=$build/linux-source-6.1 new version

	version=$(source_version)
	[ "$(cat "$dir/debian-version" 2>/dev/null)" != "$version" ] || return 0
	say "fetching linux-source-6.1 $version"
	new=$(mktemp -d "$build/source.XXXXXX")
	fetch "$new" linux-source-6.1
	# it may have refreshed the lists
	version=$(source_version)
	say "unpacking linux-source-6.1"
	mkdir "$new/src"
	tar -xJf "$new/usr/src/linux-source-6.1.tar.xz" -C "$new/src" \
		--strip-components=1
	echo "$version" >"$new/src/debian-version"
	rm -rf "$dir"
	mv "$new/src" "$dir"
	rm -rf "$new"
}

mkdir -p "$build"
exec 9>"$build/.deps.lock"
flock 9
if [ "$what" = source-version ]; then
	source_version
	exit
fi
install_packages
if [ "$what" = source ]; then
	fetch_source
	exit
fi
[ "$what" != deb ] || exit 0
for kernel in "${kernels[@]}"; do
	fetch_kernel "$kernel"
done
if [ "$what" = check ]; then
	fetch_scripts
	fetch_promtool
fi
