#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Give ip(8) the object "atp": a line in its table, in its usage and in its
# header, and our objects in its Makefile.  Each place must be there once.
#
# usage: patch.sh SRC

set -euo pipefail

src=$1

# put FILE PATTERN SCRIPT: edit the one line that matches
put() {
	local file=$src/ip/$1 found

	found=$(grep -c -- "$2" "$file") || true
	if [ "$found" -ne 1 ]; then
		echo "patch.sh: ip/$1: \"$2\" is there $found times" >&2
		exit 1
	fi
	sed -i "/$2/$3" "$file"
}

put ip.c '^	{ "help",	do_help },' 'i\	{ "atp",	do_ipatp },'
put ip.c 'OBJECT := { address |' 's/ amt |/ atp |&/'
put ip_common.h '^int do_ipmacsec(' 'i\int do_ipatp(int argc, char **argv);'
# shellcheck disable=SC2016 # make expands it
put Makefile '^include .*config\.mk$' 'a\include $(ATP_DIR)/ip.mk'
