#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Sourced: what a user sees of a test that has ended.

# report NAME LOG SECONDS: one line; for a failure what is wrong, and the
# output, shortened
report() {
	local name=$1 log=$2 passed failed

	read -r passed failed <"$log.result"
	if [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]; then
		printf '  %-7s %s (%d results, %d s)\n' \
			PASS "$name" "$passed" "$3"
		return
	fi
	printf '  %-7s %s (%d passed, %d failed, %d s)\n' \
		FAIL "$name" "$passed" "$failed" "$3"
	sed '1d; s/^/    /' "$log.result"
	if [ "$(wc -l <"$log")" -le 120 ]; then
		sed 's/^/    | /' "$log"
	else
		grep -n -E '^(not ok|# )' "$log" | head -n 60 | sed 's/^/    | /'
		echo "    | ... the end of $(wc -l <"$log") lines:"
		tail -n 50 "$log" | sed 's/^/    | /'
	fi
}
