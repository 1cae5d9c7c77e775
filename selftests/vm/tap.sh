#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Sourced by tests that are shell scripts: TAP in a few functions.
#
#	plan 2
#	check "one is one" [ 1 = 1 ]
#	fails "one is not two" [ 1 = 2 ]
#	finish
#
# A command that is checked is shown with its output when it fails.

tap_n=0
tap_failed=0

plan() {
	echo "TAP version 13"
	echo "1..$1"
}

# result STATUS DESCRIPTION
result() {
	tap_n=$((tap_n + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $tap_n $2"
	else
		tap_failed=$((tap_failed + 1))
		echo "not ok $tap_n $2"
	fi
}

# check DESCRIPTION COMMAND...: the command must succeed
check() {
	local what=$1 output status=0

	shift
	output=$("$@" 2>&1) || status=$?
	result "$status" "$what"
	if [ "$status" -ne 0 ]; then
		echo "# $*: status $status"
		[ -z "$output" ] || echo "# ${output//$'\n'/$'\n'# }"
	fi
}

# fails DESCRIPTION COMMAND...: the command must fail
fails() {
	local what=$1

	shift
	# shellcheck disable=SC2016
	check "$what" bash -c '! "$@"' fails "$@"
}

# finish: the exit status that the results call for
finish() {
	[ "$tap_failed" -eq 0 ]
	exit
}
