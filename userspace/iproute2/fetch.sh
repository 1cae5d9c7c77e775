#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Fetch Debian's iproute2 source package, without touching how apt
# is configured: sources may be switched off there, so the places where the
# system's packages come from are asked for sources by a list of our own.
#
# usage: fetch.sh DIR		leaves the package in DIR/dl

set -euo pipefail

dir=$1
dl=$dir/dl
keys=/usr/share/keyrings/debian-archive-keyring.gpg

say() {
	printf '  %-7s %s\n' "$1" "$2" >&2
}

# apt with lists and caches in $dl
apt() {
	apt-get -qq \
		-o Dir::Etc::sourcelist="$dl/sources.list" \
		-o Dir::Etc::sourceparts=/dev/null \
		-o Dir::State::lists="$dl/lists" \
		-o Dir::Cache="$dl/cache" \
		-o APT::Sandbox::User=root \
		-o Acquire::Retries=3 \
		-o Acquire::Languages=none "$@" </dev/null
}

# deb-src lines for every place that gives Debian's binary packages
source_list() {
	local option=

	[ ! -e "$keys" ] || option="[signed-by=$keys] "
	# shellcheck disable=SC2016 # apt expands these
	apt-get indextargets \
		--format '$(REPO_URI) $(RELEASE) $(COMPONENT)' \
		'Created-By: Packages' 'Origin: Debian' |
		sort -u | sed "s|^|deb-src $option|"
}

# The source of the package that is installed, or else the newest.
pick() {
	local version

	version=$(dpkg-query -W -f '${source:Version}' iproute2 2>/dev/null) ||
		version=
	if [ -n "$version" ] && apt source --download-only \
		"iproute2=$version" >/dev/null 2>&1; then
		return
	fi
	apt source --download-only iproute2 >/dev/null
}

rm -rf "$dl"
mkdir -p "$dl/lists/partial" "$dl/cache/archives/partial"
# It was once seen to answer with nothing, and the next time with all.
for _ in 1 2 3; do
	source_list >"$dl/sources.list"
	[ ! -s "$dl/sources.list" ] || break
	sleep 1
done
if [ ! -s "$dl/sources.list" ]; then
	echo "fetch.sh: apt knows no Debian mirror; run apt-get update" >&2
	exit 1
fi
say FETCH "Debian's iproute2 source package"
apt update
(cd "$dl" && pick)
rm -rf "$dl/lists" "$dl/cache"
