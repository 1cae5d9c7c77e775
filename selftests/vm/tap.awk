# SPDX-License-Identifier: GPL-2.0
#
# Count the results of one test that speaks TAP.
#
# usage: awk -v status=EXITSTATUS -f tap.awk LOG
#
# Prints "PASSED FAILED", then a line for each thing that is wrong beyond the
# "not ok" lines themselves. A result that is missing, skipped or deferred is
# a failure.

BEGIN {
	plan = -1
}

/^1\.\.[0-9]+/ {
	if (plan >= 0)
		complain("two plans")
	plan = substr($1, 4) + 0
	if (plan == 0)
		complain("skipped altogether: " $0)
	next
}

/^ok([ \t]|$)/ {
	results++
	if (tolower($0) ~ /# *(skip|todo)/) {
		failed++
		why[++n] = "does not count: " $0
	} else {
		passed++
	}
	next
}

/^not ok([ \t]|$)/ {
	results++
	failed++
	next
}

/^Bail out!/ {
	complain($0)
}

function complain(text) {
	why[++n] = text
	extra++
}

END {
	if (plan < 0)
		complain("no plan (a line 1..N)")
	else if (results < plan) {
		why[++n] = plan - results " of " plan " results missing"
		extra += plan - results
	} else if (results > plan && plan > 0) {
		complain(results " results, but " plan " planned")
	}
	# A failed result explains the exit status.
	if (status != 0 && failed + extra == 0)
		complain("exit status " status)
	printf "%d %d\n", passed, failed + extra
	for (i = 1; i <= n; i++)
		print why[i]
}
