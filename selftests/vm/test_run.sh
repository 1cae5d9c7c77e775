#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Does run.sh count every way in which a test can go wrong?

cd "$(dirname "$0")" || exit 1
# shellcheck source=tap.sh
. ./tap.sh

tmp=$(mktemp -d)
mkdir -p ../../build/vm-out
# what the virtual machine sees, and may change
out=$(mktemp -d "$(cd ../../build/vm-out && pwd)/run.XXXXXX")
trap 'rm -rf "$tmp" "$out"' EXIT

# outcome "N passed, N failed" SCRIPT: a suite of one test that is SCRIPT
outcome() {
	mkdir -p "$tmp/suites/x"
	printf '#!/bin/bash\n%s\n' "$2" >"$tmp/suites/x/t"
	chmod +x "$tmp/suites/x/t"
	echo "host timeout=2 t" >"$tmp/suites/x/tests"
	last=$(SUITES=$tmp/suites LOGS=$tmp/logs ../run.sh | tail -n 1)
	[ "$last" = "$1" ] || {
		echo "says '$last', not '$1'"
		return 1
	}
}

# listed PLACE WHERE OPTION...: is a test with that place listed for there?
listed() {
	mkdir -p "$tmp/places/x"
	printf '#!/bin/bash\n' >"$tmp/places/x/t"
	chmod +x "$tmp/places/x/t"
	echo "$1 t" >"$tmp/places/x/tests"
	SUITES=$tmp/places LOGS=$tmp/logs ../run.sh --list "${@:3}" |
		grep -q "^$2 .* x t"
}

# shares OPTION...: what is listed for a test that kernels share
shares() {
	echo "shared t a" >"$tmp/places/x/tests"
	SUITES=$tmp/places LOGS=$tmp/logs ../run.sh --list "$@" | paste -s -d ,
}

# said_at_the_end TEXT SCRIPT: between the last FAILED and the count
said_at_the_end() {
	printf '#!/bin/bash\n%s\n' "$2" >"$tmp/suites/x/t"
	SUITES=$tmp/suites LOGS=$tmp/logs ../run.sh |
		tac | sed '/^ *FAILED/q' | grep -Fq -- "$1"
}

# shared "N passed, N failed" OPTION...: three lanes and the list of one kernel, which
# at least two of them begin with. The other kernel has one test; then its lane has to
# help, for the first tests wait for what only comes after one that kills the machine.
# A test that runs twice has no result.
shared() {
	rm -rf "$out/sharing"
	mkdir "$out/sharing"
	cat >"$out/sharing/t" <<-'EOF'
	#!/bin/bash
	echo 1..1
	mkdir "ran $*" || exit
	case $1 in
	wait) until [ -e "ran end" ]; do sleep 0.2; done ;;
	die) echo c >/proc/sysrq-trigger; sleep 60 ;;
	warn) echo "WARNING: CPU: 0 PID: 1 at t.c:1 t" >/dev/kmsg ;;
	esac
	echo ok 1
	EOF
	chmod +x "$out/sharing/t"
	printf '%s\n' "6.1 t wait 1" "6.1 t wait 2" "6.1 t die" "6.1 t end" \
		"6.12 t warn" "6.1 t last "{1..9} >"$out/sharing/tests"
	SUITES=$out LOGS=$tmp/logs ../run.sh --only sharing "${@:2}" \
		>"$tmp/shared"
	[ "$(tail -n 1 "$tmp/shared")" = "$1" ] || {
		cat "$tmp/shared"
		return 1
	}
}

plan 31
check "all well" outcome "2 passed, 0 failed" 'echo 1..2; echo ok 1; echo ok 2 - b'
check "one fails" outcome "1 passed, 1 failed" \
	'echo 1..2; echo ok 1; echo not ok 2; exit 1'
check "plan at the end" outcome "1 passed, 0 failed" 'echo ok 1; echo 1..1'
check "no plan" outcome "1 passed, 1 failed" 'echo ok 1'
check "results missing" outcome "1 passed, 2 failed" 'echo 1..3; echo ok 1'
check "too many results" outcome "2 passed, 1 failed" \
	'echo 1..1; echo ok 1; echo ok 2'
check "exit status" outcome "1 passed, 1 failed" 'echo 1..1; echo ok 1; exit 3'
check "killed by a signal" outcome "1 passed, 1 failed" \
	'echo 1..1; echo ok 1; kill -SEGV $$'
check "skipped result" outcome "0 passed, 1 failed" \
	'echo 1..1; echo "ok 1 # SKIP no time"'
check "skipped test" outcome "0 passed, 1 failed" 'echo "1..0 # SKIP"; exit 4'
check "no output" outcome "0 passed, 1 failed" ''
check "hangs" outcome "0 passed, 1 failed" 'echo 1..1; sleep 60'
check "what failed is said at the end" said_at_the_end "| not ok 2 - b" \
	'echo 1..2; echo ok 1; echo not ok 2 - b'
check "... and why" said_at_the_end "| # 3 is not 4" \
	'echo 1..2; echo ok 1; echo not ok 2 - b; echo "# 3 is not 4"'
check "... and what has no result" said_at_the_end "1 of 2 results missing" \
	'echo 1..2; echo ok 1'
check "a test of all machines" listed vm kasan --kernel kasan
check "one of a debug kernel alone" \
	listed kasan kasan --kernel kasan
fails "... not on another kernel" listed kasan 6.1 --kernel 6.1
fails "... nor on the other debug kernel" listed kasan kcsan --kernel kcsan
check "a test that is asked for" listed asked asked --only x
fails "... and that is not" listed asked asked
check "a test that is for those who have time" listed whole whole --whole
check "... or ask for it" listed whole whole --only x
fails "... and for nobody else" listed whole whole
check "each kernel has its share" [ "$(shares)" = \
	",6.1 shared 600 x t a 1/2,6.12 shared 600 x t a 2/2" ]
check "... and a debug kernel all" [ "$(shares --kernel kasan --kernel kcsan)" = \
	",kasan shared 600 x t a,kcsan shared 600 x t a" ]
fails "no test at all is a failure" env SUITES=/nonexistent \
	LOGS="$tmp/logs" ../run.sh
check "three machines share a list, and one of them dies" \
	shared "13 passed, 2 failed"
check "... one that came later" \
	grep -q '^  6\.1-[23] .*die: the machine died' "$tmp/shared"
check "... after a warning that counts once" \
	grep -q '^  FAILED  6\.12 sharing t warn: 1 failed' "$tmp/shared"
check "... also where there is no other kernel" \
	shared "12 passed, 1 failed" --kernel 6.1
finish
