#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Run fuzzers, as many at a time as there are processors: from corpus/ and what
# earlier runs have left, for FUZZ_SECONDS each (60). One result each. With the
# same FUZZ_SEED (1; 0 for another one each time) the same code is tried with
# the same inputs, as far as the time allows.
#
# usage: fuzz.sh [TARGET]...
#
# What is found stays in build/fuzz/, and is printed in base64:
#
#	build/selftests/fuzz/fuzz_TARGET FILE

cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
# shellcheck source=../vm/tap.sh
. selftests/vm/tap.sh

seconds=${FUZZ_SECONDS:-60}
seed=${FUZZ_SEED:-1}
bin=$PWD/build/selftests/fuzz
out=$PWD/build/fuzz
targets=(engine switch netlink peers args packet)
[ $# -eq 0 ] || targets=("$@")

# limits TARGET: longest input, and for command lines no leak check: ending in
# the middle frees nothing
limits() {
	case $1 in
	engine) echo -max_len=300 ;;
	switch) echo -max_len=500 ;;
	netlink) echo -max_len=2048 ;;
	peers) echo -max_len=700 ;;
	args) echo -max_len=512 -detect_leaks=0 ;;
	packet) echo -max_len=3500 ;;
	esac
}

# The fuzzer's process itself, for who started it to wait for
fuzz() {
	local t=$1

	mkdir -p "$out/$t" "$out/found/$t"
	cd "$out" || exit 1
	# shellcheck disable=SC2046 # options
	exec "$bin/fuzz_$t" -max_total_time="$seconds" -seed="$seed" \
		-timeout=60 -rss_limit_mb=2048 -print_final_stats=1 \
		-artifact_prefix="$out/found/$t/" $(limits "$t") \
		"$out/$t" "$OLDPWD/selftests/fuzz/corpus/$t" >"$out/$t.log" 2>&1
}

# report TARGET STATUS
report() {
	local status=$2 runs file

	runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$out/$1.log")
	# a fuzzer that tries nothing finds nothing
	if [ "$status" -eq 0 ] && [ "${runs:-0}" -lt 1000 ]; then
		echo "# ${runs:-no} inputs"
		status=1
	fi
	result "$status" "$1: ${runs:-?} inputs in $seconds s"
	[ "$status" -ne 0 ] || return 0
	grep -av -e '^#[0-9]' -e '# Uses: ' "$out/$1.log" | tail -n 60 |
		cut -c -500 | sed 's/^/# /'
	for file in "$out/found/$1"/*; do
		[ -e "$file" ] || continue
		echo "# build/selftests/fuzz/fuzz_$1 ${file#"$PWD"/}"
		echo "# base64: $(base64 -w 0 "$file")"
	done
}

plan ${#targets[@]}
rm -rf "$out/found"
mkdir -p "$out"
declare -A pid_of
queue=("${targets[@]}")
while [ ${#queue[@]} -gt 0 ] || [ ${#pid_of[@]} -gt 0 ]; do
	while [ ${#queue[@]} -gt 0 ] && [ ${#pid_of[@]} -lt "$(nproc)" ]; do
		fuzz "${queue[0]}" &
		pid_of[$!]=${queue[0]}
		queue=("${queue[@]:1}")
	done
	status=0
	wait -n -p ended "${!pid_of[@]}" || status=$?
	report "${pid_of[$ended]}" "$status"
	unset "pid_of[$ended]"
done
finish
