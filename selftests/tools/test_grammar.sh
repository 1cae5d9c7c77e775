#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Command lines that need no module: help at every level, and errors, which
# come before the kernel is asked.

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

# quiet COMMAND...: nothing on standard error
quiet() {
	[ -z "$("$@" 2>&1 >/dev/null)" ]
}

# silent COMMAND...: nothing on standard output
silent() {
	[ -z "$("$@" 2>/dev/null)" ]
}

check "help" run 0 '^Usage: atp ' "$atp" help
check "help by option" run 0 '^Usage: atp ' "$atp" -h
check "version" run 0 '^atp [0-9]' "$atp" -V
for object in job sock stats switch top monitor check perf; do
	check "help of $object" run 0 "^Usage: atp $object " \
		"$atp" "$object" help
	check "help of $object, abbreviated" run 0 "^Usage: atp $object " \
		"$atp" "${object:0:3}" help
done
check "help goes to standard output" quiet "$atp" job help
check "no object" run 1 '^Usage: atp ' "$atp"
check "unknown object" run 1 '"frob"' "$atp" frob
check "unknown option" run 1 '"-frob"' "$atp" -frob job
for words in "job show -json" "sock -s" "switch show --json" "top -json"; do
	# shellcheck disable=SC2086 # words
	check "option behind the object: $words" run 255 'options come first' \
		"$atp" $words
done
check "option without its word" run 255 . "$atp" -netns
check "no such namespace" run 1 nowhere "$atp" -n nowhere job
file=$(mktemp)
trap 'rm -f "$file"' EXIT

# batch LINE...: the tool, with these in a file
batch() {
	printf '%s\n' "$@" >"$file"
	"$atp" -batch "$file"
}

piped() {
	printf '%s\n' "$@" | "$atp" -b -
}

# once COMMAND...: three, whose output follows
once() {
	[ "$("$@" | grep -c '^Usage: ')" = 3 ]
}

from_file() {
	"$atp" -b - <"$file"
}

check "batch" run 0 '^Usage: atp sock .*' batch "job help" "sock help"
check "batch: each once" once batch "job help" "sock help" "stats help"
check "batch: each once, standard input is a file" once from_file
check "batch: no commands" silent batch "" "# nothing" "  "
check "batch: comments" run 0 '^Usage: atp job ' batch "job help # stall"
check "batch: a failure has a line" run 1 "Command failed $file:3" \
	batch "job help" "" "frob" "job help"
check "batch: that of the command" run 255 "Command failed $file:1" \
	batch "job add x"
check "batch: nothing after it" silent batch "frob" "job help"
forced() {
	printf '%s\n' "$@" >"$file"
	"$atp" -force -batch "$file"
}

check "batch: each once, a failure among them" \
	once forced "job help" frob "sock help" "stats help"
check "batch: by force, the first failure is the status" \
	run 255 "Command failed $file:2" forced "job help" "job add x" frob
check "batch: by force, each failure has a line" \
	run 1 "Command failed $file:3" forced frob "job help" frob
check "batch: by force, and none fails" run 0 '^Usage: ' forced "job help"
check "batch: standard input" run 1 'Command failed -:2' piped "job help" frob
check "batch: no such file" run 1 '"/nowhere/at/all"' \
	"$atp" -b /nowhere/at/all
for object in job sock stats; do
	check "unknown command of $object" run 1 '"frob"' "$atp" "$object" frob
done

# wrong PATTERN WORD...: a job that cannot be
wrong() {
	local pattern=$1

	shift
	check "job $*" run 255 "$pattern" "$atp" job "$@"
}

wrong . add
wrong . add 1
wrong . set 1
wrong . del
wrong '"x"' add x ps ::1 worker ::1
wrong '"-1"' add -1 ps ::1 worker ::1
wrong '"4294967296"' add 4294967296 ps ::1 worker ::1
wrong worker add 1 ps ::1
wrong ps add 1 worker ::1
wrong . add 1 ps
wrong '"nowhere.invalid"' add 1 ps nowhere.invalid worker ::1
wrong '"fe80::1"' add 1 ps fe80::1 worker ::1
wrong '"::2"' add 1 ps ::1 ps ::2 worker ::1
wrong '"frob"' add 1 ps ::1 worker ::1 frob 1
wrong '"x"' add 1 ps ::1 worker ::1 window x
wrong '"x"' add 1 ps ::1 worker ::1 fragment x
wrong '"1.5"' add 1 ps ::1 worker ::1 scale 1.5
wrong '"5 s"' add 1 ps ::1 worker ::1 timeout '5 s'
wrong '"-1"' add 1 ps ::1 worker ::1 patience -1
wrong '"no-such-user"' add 1 ps ::1 worker ::1 uid no-such-user
wrong '"no-such-group"' add 1 ps ::1 worker ::1 gid no-such-group
# shellcheck disable=SC2046 # a list of words
wrong 32 add 1 ps ::1 $(for i in $(seq 33); do echo worker "::$i"; done)
wrong '"window"' set 1 window 8
wrong '"2"' del 1 2
wrong '"x"' show x
wrong '"2"' show 1 2
wrong '"x"' stall x

check "sock: unknown word" run 255 '"x"' "$atp" sock show x
check "sock: job without ID" run 255 . "$atp" sock job
check "sock: rank is no number" run 255 '"x"' "$atp" sock rank x
check "stats: unknown word" run 255 '"x"' "$atp" stats show x
check "stats: two jobs" run 255 . "$atp" stats job 1 job 2
check "stats prometheus: unknown word" run 255 '"x"' "$atp" stats prometheus x
check "stats prometheus: file without path" run 255 . \
	"$atp" stats prometheus file
check "top: unknown word" run 255 '"x"' "$atp" top x
check "top: a number is a job's" run 255 'not a job ID' "$atp" top 7x
check "top: no count" run 255 '"0"' "$atp" top count 0
check "top: no interval" run 255 '"0"' "$atp" top interval 0
check "monitor: unknown word" run 255 '"x"' "$atp" monitor x
check "perf: no job" run 255 '"job"' "$atp" perf rank 0
check "perf: no rank" run 255 '"rank"' "$atp" perf job 7
check "perf: no such rank" run 255 '"32"' "$atp" perf job 7 rank 32
check "perf: no rounds" run 255 '"0"' "$atp" perf job 7 rank 0 rounds 0
check "perf: bytes of less than a value" run 255 '"3"' \
	"$atp" perf job 7 rank 0 bytes 3
check "perf: unknown system" run 255 '"x"' "$atp" perf job 7 rank 0 vs x
check "perf: unknown word" run 255 '"frob"' "$atp" perf frob 1
check "check: unknown word" run 255 '"x"' "$atp" check x
check "check: job without ID" run 255 . "$atp" check job
check "check: two jobs" run 255 . "$atp" check job 1 job 2
if ! grep -qs '^atp ' /proc/modules && ! modprobe -n atp 2>/dev/null; then
	check "without the module: how to load it" \
		run 2 'modprobe atp' "$atp" job
	check "and nothing on standard output" silent "$atp" -json job
fi
end
