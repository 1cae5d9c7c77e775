#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Debian's ip with our object: the same as atp, and still ip.

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

check "its version is iproute2's" run 0 '^ip utility, iproute2' "$ip" -V
check "its help names atp" run 255 '\| atp \|' "$ip" help
check "its other objects work" run 0 'LOOPBACK' "$ip" link show lo
check "abbreviations are as before" same "$ip" a show lo -- \
	"$ip" address show lo
check "atp can be abbreviated" run 0 '^Usage: atp ' "$ip" at help
for words in help "job help" "sock help" "stats help" "switch help" \
	"top help" "monitor help" "check help" "perf help" "job" "job frob" frob; do
	# shellcheck disable=SC2086 # words
	check "the same: $words" same "$ip" atp $words -- "$atp" $words
done
check "the same: JSON" same "$ip" -json atp job -- "$atp" -json job
check "the same: pretty JSON option" same "$ip" -j -p atp stats -- \
	"$atp" -j -p stats
fails "wrong words fail" "$ip" atp job add 1 ps ::1
end
