#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Do the packages build, has each what it is there for, and does lintian find no
# errors?

cd "$(dirname "$0")" || exit 1
# shellcheck source=../vm/tap.sh
. ../vm/tap.sh

top=$(cd ../.. && pwd)
deb=$top/build/deb

builds() {
	make --no-print-directory -C "$top" deb
}

# there NAME...: packages of these names, and no others but for debugging
there() {
	diff <(printf '%s\n' "$@" | sort) \
		<(cd "$deb" && printf '%s\n' *.deb | sed 's/_.*//' |
			grep -v -e -dbgsym | sort)
}

no_errors() {
	lintian --allow-root --fail-on error "$deb"/*.changes
}

# has NAME FILE...: these files are in that package
has() {
	local file

	dpkg-deb -c "$deb/$1"_*.deb | awk '{ print $6 }' >"$list"
	for file in "${@:2}"; do
		grep -q -x "\./$file" "$list" || {
			echo "no $file"
			return 1
		}
	done
}

# No package has a file of another's: they could not be installed together.
apart() {
	local name

	for name in "$deb"/*.deb; do
		dpkg-deb -c "$name" | awk '!/\/$/ { print $6 }'
	done | sort | uniq -d >"$list"
	cat "$list"
	[ ! -s "$list" ]
}

# has_not NAME FILE: it is another package's
has_not() {
	! dpkg-deb -c "$deb/$1"_*.deb | grep -F "$2"
}

# As installed, with PyTorch beside it, which the machines of test_install.sh
# have not.
torch_imports() {
	local name

	for name in libatp python3-atp; do
		dpkg-deb -x "$deb/$name"_*.deb "$root" || return
	done
	LD_LIBRARY_PATH=$root/usr/lib/$multiarch \
		PYTHONPATH=$root/usr/lib/python3/dist-packages \
		/usr/bin/python3 -c 'import atp.torch; print(atp.torch.__file__)' |
		tee "$list"
	grep "^$root/$python/torch.py$" "$list"
}

list=$(mktemp)
root=$(mktemp -d)
trap 'rm -rf "$list" "$root"' EXIT
version=$(dpkg-parsechangelog -l "$top/debian/changelog" -S Version)
dkms=usr/src/atp-$version
python=usr/lib/python3/dist-packages/atp
multiarch=$(dpkg-architecture -qDEB_HOST_MULTIARCH)

plan 16
check "make deb" builds
check "all packages are there" there atp-dkms atp-tools libatp libatp-dev \
	python3-atp atp-switch atp-perf
check "the module's sources" has atp-dkms "$dkms"/{dkms.conf,Kbuild} \
	"$dkms"/{kernel/main.c,uapi/linux/atp.h}
check "the tool" has atp-tools usr/sbin/atp usr/share/man/man8/atp.8.gz \
	usr/share/man/man8/atp-switch.8.gz usr/share/man/man7/atp.7.gz
check "texts for who runs it" has atp-tools \
	usr/share/doc/atp-tools/{README,operations.rst,tracing.rst}'\(\.gz\)*'
check "what perf is compared with" has atp-perf usr/lib/atp/perf-gloo \
	usr/lib/atp/perf-mpi
check "the service" has atp-switch lib/systemd/system/atp-switch.service \
	usr/share/doc/atp-switch/examples/dispatcher.conf
check "the library" has libatp "usr/lib/$multiarch/libatp.so.1.1.0"
check "the headers" has libatp-dev usr/include/atp.h usr/include/linux/atp.h \
	usr/share/man/man3/{libatp,atp_join,atp_wait}.3.gz
check "the text for who programs" has libatp-dev \
	usr/share/doc/libatp-dev/api.rst'\(\.gz\)*'
check "it has no page of atp-tools" has_not libatp-dev man7
check "the Python module" has python3-atp $python/__init__.py $python/torch.py
check "its text" has python3-atp usr/share/doc/python3-atp/api.rst'\(\.gz\)*'
check "its part for PyTorch is imported" torch_imports
check "no file is in two packages" apart
check "lintian finds no errors" no_errors
finish
