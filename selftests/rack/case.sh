#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# One end-to-end case, in the virtual machine:
#
#   selftests/vm/run-vm.sh -- selftests/rack/case.sh workers=2 loss=1 switch=on
#
# Prints what the ranks counted.  Exit status 0: every rank had every sum, bit
# by bit.  What is not given is as in the list below.

set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=/dev/null
. "$top/selftests/lib/rack.sh"

declare -A c=(
	[workers]=2		# 1 to 32
	[payload]=248		# bytes of a fragment
	[mtu]=""			# default: what the payload needs, 1500 at least
	[family]=4		# IP version
	[switch]=off		# on, or off,on: one run each
	[attach]=""		# words for atp switch attach
	[window]=""		# of the job, in fragments
	[scale]=100000000	# of the job
	[timeout]=30000		# of the job, in milliseconds
	[loss]=0		# percent on every leg
	[duplicate]=0		# percent on every leg
	[reorder]=0		# percent that overtakes the rest, on every leg
	[jitter]=0		# milliseconds: a delay of twice that, give or
				# take, on every leg
	[corrupt]=0		# percent with a flipped bit, on what hosts send
	[chunks]=8
	[lanes]=8192		# per chunk
	[tails]=""		# yes: chunks of all lengths up to that
	[dtype]=float32		# int32, mixed
	[values]=plain		# edge, wild
	[depth]=4		# chunks in flight
	[runs]=1
	[seed]=1
	[job]=7
	[jobs]=1		# jobs at the same time: 7, 8 ...
	[ps]=ps			# or a worker's host: w0
	[at]=""			# CHUNK:VERB: of rack.sh, in mid-stream
	[at2]=""			# another
	[args]=""			# more words for the worker program
	[rack]=new		# keep: use the one that is there
	[limit]=60		# seconds of silence
	[want]=""		# counters of the switch that must not be zero;
				# default: aggregated, single with one worker
	[of]=each		# job; any: one of them is enough
	[then]=aggregated	# counter that grows in a run after at
)

# On kasan a rank that attaches the switch's program lets the others wait for more
# than a minute.
case $(</proc/sys/kernel/osrelease) in
*-kasan | *-kcsan) c[limit]=240 ;;
esac

for word in "$@"; do
	key=${word%%=*}
	if [ "$key" = "$word" ] || [ -z "${c[$key]+x}" ]; then
		echo "case: what is $word?" >&2
		exit 2
	fi
	c[$key]=${word#*=}
done

fail() {
	echo "case: $*"
	exit 1
}

if [ "${c[reorder]}" != 0 ] && [ "${c[jitter]}" != 0 ]; then
	fail "either reorder or jitter"
fi

if [ -z "${c[mtu]}" ]; then
	# IPv6, UDP and ATP headers
	c[mtu]=$((c[payload] + 40 + 8 + 36))
	((c[mtu] >= 1500)) || c[mtu]=1500
fi

if [ "${c[rack]}" = new ]; then
	modprobe atp || fail "cannot load the module"
	rack_up "${c[workers]}" "${c[mtu]}" || fail "no rack"
	trap rack_down EXIT
fi

# what a case that failed left behind
while read -r id _; do
	rack_job_del "$id"
done < <(rack_jobs)

export RACK_PS=${c[ps]}
jobs=()
for ((job = c[job]; job < c[job] + c[jobs]; job++)); do
	jobs+=("$job")
	rack_job_add "$job" "${c[workers]}" "${c[family]}" \
		fragment "${c[payload]}" scale "${c[scale]}" \
		timeout "${c[timeout]}" \
		${c[window]:+window "${c[window]}"} || fail "no job"
done

disturb=()
[ "${c[loss]}" = 0 ] || disturb+=(loss "${c[loss]}%")
[ "${c[duplicate]}" = 0 ] || disturb+=(duplicate "${c[duplicate]}%")
# The rest is held back, so that those without delay overtake it.
[ "${c[reorder]}" = 0 ] || disturb+=(delay 1ms reorder "$((100 - c[reorder]))%")
[ "${c[jitter]}" = 0 ] || disturb+=(delay "$((2 * c[jitter]))ms" "${c[jitter]}ms")
# What a host receives was verified before netem gets it.
flip=()
[ "${c[corrupt]}" = 0 ] || flip+=(corrupt "${c[corrupt]}%")
rack_netem all in "${disturb[@]}" || fail "no netem"
disturb+=("${flip[@]}")
rack_netem all out "${disturb[@]}" || fail "no netem"

# What rack_netem_did says, and how many were corrupt, as far as it matters
faults() {
	local bad=0 job

	[ ${#disturb[@]} -gt 0 ] || return
	if [ ${#flip[@]} -gt 0 ]; then
		bad=$(rack_bad_checksums)
		for job in "${jobs[@]}"; do
			! rack_switch_is_on ||
				bad=$((bad + $(counter drop_csum "$job")))
		done
	fi
	echo "$(rack_netem_did) $bad"
}

# The faults that no packet has met, to hosts ("in") or from them
missing() {
	local did i=0 key

	read -ra did < <(faults)
	for key in loss-in loss-out duplicate-in reorder-in reorder-out corrupt; do
		[ "${c[${key%-*}]}" = 0 ] || [ "${did[i]}" -gt "${had[i]}" ] ||
			echo -n " $key"
		i=$((i + 1))
	done
}

at=()
for word in "${c[at]}" "${c[at2]}"; do
	[ -z "$word" ] ||
		at+=(--at "${word%%:*}:$top/selftests/lib/rack.sh ${word#*:}")
done

# one JOB
one() {
	# shellcheck disable=SC2086 # words
	"$top/build/selftests/rack/worker" --job "$1" \
		--workers "${c[workers]}" --chunks "${c[chunks]}" \
		--lanes "${c[lanes]}" ${c[tails]:+--tails} \
		--dtype "${c[dtype]}" --values "${c[values]}" \
		--depth "${c[depth]}" --runs "${c[runs]}" \
		--seed $((c[seed] * 1000 + $1)) --scale "${c[scale]}" \
		--limit "${c[limit]}" "${at[@]}" ${c[args]}
}

run() {
	local job pid pids=()

	for job in "${jobs[@]}"; do
		one "$job" &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do
		wait "$pid" || status=1
	done
	[ $status -eq 0 ] || rack_show
}

# A sum that is right proves nothing of a switch that did nothing.
look() {
	local counters job have=0

	for job in "${jobs[@]}"; do
		counters=$(rack_switch_counters "$job") ||
			fail "no counters"
		if has_all "$counters"; then
			have=$((have + 1))
		elif [ "${c[of]}" = each ]; then
			complain "the switch lacks some of ${c[want]}"
		fi
		# also a job that found all aggregators taken went through it
		has "$counters" "forwarded " ||
			complain "nothing went through the switch"
		if [ ${#disturb[@]} -eq 0 ] && has "$counters" drop; then
			complain "the switch dropped packets"
		fi
	done
	job=${jobs[*]}
	[ $have -gt 0 ] || complain "none of them has ${c[want]}"
}

# counter NAME JOB: of the switch
counter() {
	rack_switch_counters "$2" | awk -v name="$1" '$1 == name { n = $2 }
		END { print n + 0 }'
}

# What was done to the switch in mid-stream is no reason for it to leave the sums
# to the PS from then on.
look_again() {
	local job before=() counters

	for job in "${jobs[@]}"; do
		before+=("$(counter "${c[then]}" "$job")")
	done
	at=()
	run
	for job in "${jobs[@]}"; do
		counters=$(rack_switch_counters "$job") || fail "no counters"
		[ "$(counter "${c[then]}" "$job")" -gt "${before[0]}" ] ||
			complain "no more ${c[then]} than ${before[0]}"
		before=("${before[@]:1}")
	done
}

# has COUNTERS START: is there a line that begins so?
has() {
	[[ $'\n'$1 == *$'\n'"$2"* ]]
}

# has_all COUNTERS
has_all() {
	local name

	for name in ${c[want]}; do
		has "$1" "$name " || return
	done
}

# complain TEXT: of look's job and counters
complain() {
	echo "case: job $job: $*: ${counters//$'\n'/, }"
	status=1
}

if [ -z "${c[want]}" ]; then
	c[want]=aggregated
	[ "${c[workers]}" -gt 1 ] || c[want]=single
fi

# A sum that is right proves nothing of a fault that did not happen.  Where so few
# packets were hit that it may have been none: once more, without what else
# happens in mid-run.
show_faults() {
	local at=() lacks tries

	lacks=$(missing)
	for ((tries = 0; tries < 20 && status == 0; tries++)); do
		[ -n "$lacks" ] || break
		run
		c[seed]=$((c[seed] + 1))
		lacks=$(missing)
	done
	if [ -n "$lacks" ]; then
		echo "case: no packet shows:$lacks"
		status=1
	fi
}

status=0
for state in ${c[switch]//,/ }; do
	# shellcheck disable=SC2086 # words
	case $state in
	on) rack_switch_on ${c[attach]} || fail "no switch" ;;
	off) rack_switch_off || fail "the switch stays" ;;
	*) fail "the switch cannot be $state" ;;
	esac
	read -ra had < <(faults)
	run
	if [ ${#at[@]} -gt 0 ]; then
		! rack_switch_is_on || look_again
	elif [ "$state" = on ]; then
		look
	fi
	c[seed]=$((c[seed] + 1))
	show_faults
done

# A round trip is delayed four times, each time by the jitter at least; all are
# different.
if [ "${c[jitter]}" != 0 ]; then
	trips=$(rack_in w0 ping -qc 10 -i 0.01 -W 1 10.0.0.254 |
		sed -n 's|^rtt .* = ||p')
	IFS=/ read -r least _ most _ <<<"$trips"
	if [ -z "$most" ] || [ "$least" = "$most" ] ||
	   [ "${least%.*}" -lt $((4 * c[jitter])) ]; then
		echo "case: round trips of $trips show no jitter"
		status=1
	fi
fi

if [ "${c[rack]}" = keep ]; then
	for job in "${jobs[@]}"; do
		rack_job_del "$job" || fail "the job stays"
	done
fi
exit $status
