#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Run the tests of all suites and count. selftests/README says what a suite
# is and how to add a test.

set -u

usage() {
	cat <<-EOF
	usage: run.sh [OPTION]...

	  --only SUITE[/TEST]  only these (TEST: how the line in the suite's
	                       file "tests" begins); may be given again
	  --kernel NAME        only in the machine with this kernel, besides
	                       the host; may be given again (default 6.1 6.12;
	                       others: kasan, kcsan)
	  --host               nothing that needs a virtual machine
	  --vm                 nothing that runs on the host
	  --whole              no kernel has but a share of a test's cases
	  --list               show what would run
	EOF
}

here=$(cd "$(dirname "$0")" && pwd)
# The self-test of this script has suites of its own.
suites=${SUITES:-$here}
top=$(cd "$here/.." && pwd)
only=()
kernels=()
want_host=1
want_vm=1
whole=
list=

while [ $# -gt 0 ]; do
	case $1 in
	--only) only+=("$2"); shift ;;
	--kernel) kernels+=("$2"); shift ;;
	--host) want_vm= ;;
	--vm) want_host= ;;
	--whole) whole=1 ;;
	--list) list=1 ;;
	--help | -h) usage; exit 0 ;;
	*) usage >&2; exit 2 ;;
	esac
	shift
done
[ ${#kernels[@]} -gt 0 ] || kernels=(6.1 6.12)
# whoever asks for a test wants all of it
[ ${#only[@]} -eq 0 ] || whole=1

# shellcheck source=vm/report.sh
. "$here/vm/report.sh"

# Runs of different suites may go on at the same time.
id=all
[ ${#only[@]} -eq 0 ] || id=$(printf '%s\n' "${only[@]%%/*}" | sort -u |
	paste -s -d +)
logs=${LOGS:-$top/build/tests/$id}
# shellcheck source=vm/lanes.sh
. "$here/vm/lanes.sh"

passed=0
failed=0
summary=()

say() {
	printf '  %-7s %s\n' "$1" "$2"
}

# one more failure, with no log behind it
fail() {
	say FAIL "$1"
	failed=$((failed + 1))
	summary+=("FAILED  $1")
}

# count WHERE NAME LOG: add the results of a test.  What failed is said once more
# at the end, as often nothing but the end of the output is looked at.
count() {
	local p f line

	read -r p f <"$3.result"
	# a test that yields no result proves nothing
	[ $((p + f)) -gt 0 ] || f=1
	passed=$((passed + p))
	failed=$((failed + f))
	[ "$f" -ne 0 ] || return
	summary+=("FAILED  $1 $2: $f failed, output in ${3#"$top"/}")
	while read -r line; do
		summary+=("  | $line")
	done < <({
		sed 1d "$3.result"
		failures "$3"
	} | head -n 12 | cut -c -300)
}

wanted() {
	local pattern

	[ ${#only[@]} -gt 0 ] || return 0
	for pattern in "${only[@]}"; do
		[[ "$1" == "$pattern" || "$1/$2" == "$pattern"* ]] && return 0
	done
	return 1
}

# One that was built to find bugs, and is several times slower for it.
is_debug() {
	[ -e "$here/debug/configs/$1.config" ]
}

have_bpf() {
	[ "$(id -u)" -eq 0 ] && bpftool prog show >/dev/null 2>&1
}

# Expand a line of a suite's list to words of the form
#   WHERE TIMEOUT SUITE COMMAND [ARG]...
# one line for each place where the test runs and each match of a wildcard.
expand() {
	local suite=$1 where limit=600 place match matches
	local -a words

	read -r -a words <<<"$2"
	where=${words[0]}
	words=("${words[@]:1}")
	if [[ ${words[0]} == timeout=* ]]; then
		limit=${words[0]#timeout=}
		words=("${words[@]:1}")
	fi
	matches=$(cd "$suites/$suite" && compgen -G "${words[0]}" |
		while read -r match; do
			[ ! -x "$match" ] || echo "$match"
		done
		cd "$top/build/selftests/$suite" 2>/dev/null &&
			compgen -G "${words[0]}" | while read -r match; do
				[ ! -x "$match" ] || echo "$match"
			done)
	while read -r match; do
		# leave out what the compiler leaves beside its output
		[[ $match != *.[od] ]] || continue
		wanted "$suite" "$match ${words[*]:1}" || continue
		for place in ${where//,/ }; do
			echo "$place $limit $suite $match ${words[*]:1}"
		done
	done < <(sort -u <<<"${matches:-${words[0]}}")
}

build_suite() {
	local log=$logs/$1.build.log

	[ -e "$suites/$1/Makefile" ] || return 0
	make --no-print-directory -C "$suites/$1" -j2 >"$log" 2>&1 && return 0
	tail -n 30 "$log" | sed 's/^/    | /'
	fail "$1: its programs do not build, output in ${log#"$top"/}"
}

# host_ended DIR: wait for one of the busy, report and count it
host_ended() {
	local pid n

	wait -n -p pid
	n=${busy[$pid]}
	unset "busy[$pid]"
	read -r -a words <<<"${tests[n]}"
	report "${words[*]:2}" "$1/$n.log" $((SECONDS - start[n]))
	count host "${words[*]:2}" "$1/$n.log"
}

# run_host DIR TEST...: leave the output in DIR.  Two at a time: most of them
# keep one processor busy, or wait.  Those that may take longest come first, so that
# none of them is left to run alone at the end.
run_host() {
	local dir=$1 n
	local -a tests words start=()
	local -A busy=()

	mkdir -p "$dir"
	mapfile -t -O 1 tests < <(printf '%s\n' "${@:2}" | sort -s -k 2,2nr)
	trap 'kill "${!busy[@]}" 2>/dev/null; exit 130' INT TERM
	for ((n = 1; n <= ${#tests[@]}; n++)); do
		[ ${#busy[@]} -lt 2 ] || host_ended "$dir"
		read -r -a words <<<"${tests[n]}"
		start[n]=$SECONDS
		"$here/vm/run-one.sh" "$dir/$n.log" "${words[@]:1}" &
		busy[$!]=$n
	done
	while [ ${#busy[@]} -gt 0 ]; do
		host_ended "$dir"
	done
	trap - INT TERM
}

if [ -z "$list" ]; then
	rm -rf "$logs"
	mkdir -p "$logs"
fi

host=()
vm=()
# in the machines, in shares
shared=()
debug=()
# in the machine with one kernel alone
own=()
for dir in "$suites"/*/; do
	suite=$(basename "$dir")
	[ -e "$dir/tests" ] || continue
	wanted_suite=
	if [ ${#only[@]} -eq 0 ]; then
		wanted_suite=1
	else
		for pattern in "${only[@]}"; do
			[ "${pattern%%/*}" != "$suite" ] || wanted_suite=1
		done
	fi
	[ -n "$wanted_suite" ] || continue
	[ -n "$list" ] || build_suite "$suite"
	while read -r line; do
		[[ -n $line && $line != \#* ]] || continue
		while read -r test; do
			case $test in
			"host "*) host+=("$test") ;;
			"asked "*)
				[ ${#only[@]} -eq 0 ] || host+=("$test")
				;;
			"whole "*)
				[ -z "$whole" ] || host+=("$test")
				;;
			"vm "*) vm+=("$test") ;;
			"shared "*) shared+=("$test") ;;
			"debug "*) debug+=("$test") ;;
			"host-bpf "*)
				# where the host cannot, the machine can
				if have_bpf; then
					host+=("$test")
				else
					vm+=("$test")
				fi
				;;
			"") ;;
			[0-9]*) own+=("$test") ;;
			*)
				if is_debug "${test%% *}"; then
					own+=("$test")
				else
					fail "$suite: no such place: $test"
				fi
				;;
			esac
		done < <(expand "$suite" "$line")
	done <"$dir/tests"
done

[ -n "$want_host" ] || host=()
[ -n "$want_vm" ] || {
	vm=()
	shared=()
	own=()
}

# share KERNEL: the argument for a test of which each kernel has a share
share() {
	local n=1

	[ -z "$whole" ] && [ ${#kernels[@]} -gt 1 ] && ! is_debug "$1" || return
	until [ "${kernels[n - 1]}" = "$1" ]; do
		n=$((n + 1))
	done
	echo " $n/${#kernels[@]}"
}

# in_machine KERNEL: what runs there, to "machine".  What is shared has the most
# cases and comes first, so that no lane is left alone with it at the end.
in_machine() {
	local test

	machine=("${shared[@]/%/$(share "$1")}" "${vm[@]}")
	for test in "${own[@]}"; do
		[ "${test%% *}" != "$1" ] || machine+=("$test")
	done
}

if [ -n "$list" ]; then
	printf '%s\n' "${host[@]}"
	for kernel in "${kernels[@]}"; do
		in_machine "$kernel"
		printf "$kernel %s\n" "${machine[@]}"
		! is_debug "$kernel" || [ ${#debug[@]} -eq 0 ] ||
			printf "%s $kernel\n" "${debug[@]}"
	done
	exit 0
fi

if [ ${#host[@]} -gt 0 ]; then
	say TESTS "on this machine: ${#host[@]}"
	run_host "$logs/host" "${host[@]}"
fi
for kernel in "${kernels[@]}"; do
	if [ ${#debug[@]} -gt 0 ] && is_debug "$kernel"; then
		say TESTS "of kernel $kernel: ${#debug[@]}"
		run_host "$logs/$kernel" "${debug[@]/%/ $kernel}"
	fi
done
running=()
for kernel in "${kernels[@]}"; do
	in_machine "$kernel"
	if [ ${#machine[@]} -gt 0 ]; then
		say TESTS "in a machine with kernel $kernel: ${#machine[@]}"
		make_list "$kernel" "${machine[@]}"
		running+=("$kernel")
	fi
done
run_lanes "${running[@]}"

if [ ${#summary[@]} -gt 0 ]; then
	echo
	printf '  %s\n' "${summary[@]}"
	echo
fi
[ $((passed + failed)) -gt 0 ] ||
	say NONE "no such test here: selftests/run.sh --list shows what there is"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
