#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Sourced: what the tests of the tools share.

cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
# shellcheck source=../vm/tap.sh
. selftests/vm/tap.sh
# shellcheck disable=SC2034 # for who sources this
atp=$PWD/build/bin/atp
# shellcheck disable=SC2034
ip=$PWD/build/iproute2/ip

# run STATUS PATTERN COMMAND...: exit status, and a regular expression that
# the output must match; empty for no output at all
run() {
	local want=$1 pattern=$2 output status=0

	shift 2
	output=$("$@" 2>&1 </dev/null) || status=$?
	printf '%s\n' "$output"
	[ "$status" -eq "$want" ] || return 1
	if [ -z "$pattern" ]; then
		[ -z "$output" ]
	else
		grep -Eq -- "$pattern" <<<"$output"
	fi
}

# same COMMAND -- COMMAND: equal status and output
same() {
	local first=() a b

	while [ "$1" != -- ]; do
		first+=("$1")
		shift
	done
	shift
	a=$("${first[@]}" 2>&1; echo "status $?")
	b=$("$@" 2>&1; echo "status $?")
	diff <(echo "$a") <(echo "$b")
}

# holds EXPRESSION COMMAND...: JSON on standard output, of which a Python
# expression about "j" is true
holds() {
	local expression=$1

	shift
	"$@" | python3 -c 'import json, sys
j = json.load(sys.stdin)
print(j)
sys.exit(not eval(f"({sys.argv[1]})"))' "$expression"
}

# The plan at the end, as each test counts.
end() {
	echo "1..$tap_n"
	finish
}
