#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Sourced: what a user sees of a test that has ended.

# failures LOG: each failed result with all that is said between the results
# before and after it
failures() {
	awk '/^(ok|not ok)/ {
			if (bad || /^not/)
				printf "%s", text
			bad = /^not/
			if (bad)
				print
			text = ""
			next
		}
		{ text = text $0 "\n" }
		END { if (bad) printf "%s", text }' "$1"
}

# report NAME LOG SECONDS: one line; for a failure what is wrong, and the
# output about it
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
	failures "$log" | head -n 100 | sed 's/^/    | /'
	echo "    | ... the end of $(wc -l <"$log") lines:"
	tail -n 15 "$log" | sed 's/^/    | /'
}
