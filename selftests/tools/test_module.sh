#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The tool with the module: what is configured is what is shown.

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

ns=tools-$$
trap 'ip netns del "$ns"' EXIT
ip netns add "$ns"
ip -n "$ns" link set lo up
ip -n "$ns" addr add 10.0.0.1/32 dev lo
ip -n "$ns" addr add 2001:db8::1/128 dev lo nodad
t=("$atp" -n "$ns")

# refused PATTERN WORD...: a job that the kernel does not want
refused() {
	local pattern=$1

	shift
	check "refused: $*" run 2 "^Error: $pattern" "${t[@]}" job "$@"
}

rmmod atp 2>/dev/null
check "the family loads the module" run 0 '' "${t[@]}" job show
check "no jobs in JSON" run 0 '^\[\]$' "${t[@]}" -j job show
check "no sockets" run 0 '^\[\]$' "${t[@]}" -j sock
check "no stalls" run 0 '^\[\]$' "${t[@]}" -j job stall

check "add" run 0 '' "${t[@]}" job add 7 ps 10.0.0.1 worker 10.0.0.1 \
	worker 10.0.0.2 fragment 248 window 64 scale 1e6 timeout 1.5s \
	patience 90s uid nobody gid 0
check "show" run 0 \
	'^job 7 ps 10.0.0.1 .* timeout 1.5s patience 1min 30s uid nobody' \
	"${t[@]}" job show 7
check "show in JSON" holds 'j[0]["id"] == 7 and j[0]["ps"] == "10.0.0.1" and
	[w["addr"] for w in j[0]["workers"]] == ["10.0.0.1", "10.0.0.2"] and
	(j[0]["fragment"], j[0]["window"]) == (248, 64) and
	(j[0]["scale"], j[0]["timeout_ms"]) == (1000000, 1500) and
	j[0]["patience_ms"] == 90000 and
	j[0]["role"] == ["worker", "ps"] and j[0]["gid"] == 0 and
	j[0]["running"] is False' "${t[@]}" -j job show 7
check "counters with -stats" holds 'j[0]["counters"]["sent"] == 0' \
	"${t[@]}" -j -s job show 7
check "no counters without" holds '"counters" not in j[0]' \
	"${t[@]}" -j job show 7
check "pretty JSON is the same JSON" bash -c \
	'diff <("$@" -j job | python3 -m json.tool) \
	 <("$@" -j -p job | python3 -m json.tool)' x "${t[@]}"
check "defaults" run 0 '' "${t[@]}" job add 4 ps 10.0.0.1 worker 10.0.0.2
check "are shown" run 0 \
	'^job 4 ps 10.0.0.1 fragment 1400 window 256 scale 100000000 timeout 10s patience 10min$' \
	"${t[@]}" job show 4
check "are removed" run 0 '' "${t[@]}" job del 4
check "IPv6" run 0 '' "${t[@]}" job add 3 ps 2001:db8::1 worker 2001:db8::2
check "sorted by ID" holds '[x["id"] for x in j] == [3, 7]' "${t[@]}" -j job
check "other namespaces have others" run 0 '^\[\]$' \
	unshare -n "$atp" -j job show

check "set" run 0 '' "${t[@]}" job set 7 timeout 2min gid daemon
check "what was set" run 0 \
	'timeout 2min patience 1min 30s uid nobody gid daemon' \
	"${t[@]}" job show 7
check "set patience" run 0 '' "${t[@]}" job set 7 patience 0
check "it alone" holds \
	'(j[0]["timeout_ms"], j[0]["patience_ms"]) == (120000, 0)' \
	"${t[@]}" -j job show 7
check "uid and gid of nobody" run 0 '' "${t[@]}" job set 7 uid none gid none
check "are not shown" holds 'not {"uid", "gid"} & set(j[0])' \
	"${t[@]}" -j job show 7
check "set again" run 0 '' "${t[@]}" job set 7 uid nobody gid daemon
refused 'a job with this ID' add 7 ps 10.0.0.1 worker 10.0.0.2
refused 'no job' show 8
refused 'no job' set 8 timeout 1s
refused 'no job' del 8
refused 'fragment: .*8 to 3400' add 8 ps 10.0.0.1 worker 10.0.0.2 fragment 4000
refused 'fragment: ' add 8 ps 10.0.0.1 worker 10.0.0.2 fragment 9
refused 'window: ' add 8 ps 10.0.0.1 worker 10.0.0.2 window 100
refused 'timeout: .*100 to 3600000' set 7 timeout 5
refused 'worker 1' add 8 ps 10.0.0.1 worker 10.0.0.2 worker ::1
refused 'worker 1 addr' add 8 ps 10.0.0.1 worker 10.0.0.2 worker 224.0.0.1
check "who may not change anything is told why" run 2 CAP_NET_ADMIN \
	setpriv --reuid 65534 --clear-groups --inh-caps -all \
	--bounding-set -all "$atp" job del 7

check "stats of the namespace" holds 'j[0]["port"] == 4797 and
	all(v == 0 for v in j[0]["counters"].values())' "${t[@]}" -j stats
check "stats of a job" holds 'j[0]["id"] == 7 and
	j[0]["counters"]["sent"] == 0' "${t[@]}" -j stats job 7

# A worker that waits for another
ip netns exec "$ns" python3 -c 'import signal, socket, struct, sys
s = socket.socket(18, socket.SOCK_SEQPACKET)
s.setblocking(False)
try:
    s.setsockopt(299, 1, struct.pack("II", 7, 0))
except BlockingIOError:
    pass
open(sys.argv[1], "w")
signal.pause()' "/tmp/$ns.up" &
worker=$!
until [ -e "/tmp/$ns.up" ]; do sleep 0.1; done

check "its socket" holds 'len(j) == 1 and j[0]["rank"] == 0 and
	j[0]["state"] == "joining" and j[0]["workers"] == 2' "${t[@]}" -j sock
check "its socket by job" holds 'len(j) == 1' "${t[@]}" -j sock job 7
check "not by another" holds 'not j' "${t[@]}" -j sock show job 3
check "not by another rank" holds 'not j' "${t[@]}" -j sock rank 1
joined() {
	for _ in $(seq 100); do
		! holds 'j[0]["workers"][0]["joined"]' "${t[@]}" -j job show 7 ||
			return 0
		sleep 0.1
	done
	return 1
}
check "the PS hears of it" joined
check "who is waited for" holds 'j[0]["id"] == 7 and
	j[0]["state"] == "joining" and
	j[0]["waiting"] == [{"rank": 1, "addr": "10.0.0.2"}]' \
	"${t[@]}" -j job stall
check "the same as text" run 0 'waits for worker 1 10.0.0.2' \
	"${t[@]}" job stall 7

"${t[@]}" -j monitor >"/tmp/$ns.events" &
monitor=$!
"${t[@]}" monitor job 3 >"/tmp/$ns.text" &
monitor3=$!
# until the socket has subscribed, nothing is heard
listening() {
	for _ in $(seq 100); do
		"${t[@]}" job set 3 timeout 10s
		[ -s "/tmp/$ns.events" ] && [ -s "/tmp/$ns.text" ] && return 0
		sleep 0.1
	done
	return 1
}
listening_again() {
	for _ in $(seq 100); do
		"${t[@]}" job set 3 timeout 10s
		[ -s "/tmp/$ns.events" ] && return 0
		sleep 0.1
	done
	return 1
}
lost() {
	for _ in $(seq 100); do
		grep -q '^{"time":"[0-9.]*","event":"lost"}$' "/tmp/$ns.events" &&
			grep -q '^Some events were lost' "/tmp/$ns.text" && return 0
		sleep 0.1
	done
	return 1
}
check "monitor hears changes" listening
check "delete" run 0 '' "${t[@]}" job del 7
check "delete the other" run 0 '' "${t[@]}" job del 3
heard() {
	for _ in $(seq 100); do
		grep -q 'deleted.*3' "/tmp/$ns.events" && return 0
		sleep 0.1
	done
	return 1
}
check "monitor hears deletions" heard
kill "$monitor" "$monitor3" "$worker"
wait "$monitor" "$monitor3" "$worker" 2>/dev/null
check "one JSON object per line" python3 -c 'import json, sys
for line in open(sys.argv[1]):
    e = json.loads(line)
    assert e["event"] and e["job"] in (3, 7)' "/tmp/$ns.events"
fails "a job's monitor hears no other" grep -q 'job 7' "/tmp/$ns.text"
# One that stands still, with little room for what comes meanwhile
"${t[@]}" job add 3 ps 10.0.0.1 worker 10.0.0.1
room=$(sysctl -n net.core.rmem_default)
sysctl -qw net.core.rmem_default=4096
: >"/tmp/$ns.events"
"${t[@]}" -json -ts monitor >"/tmp/$ns.events" 2>"/tmp/$ns.text" &
monitor=$!
check "monitor with little room hears changes" listening_again
sysctl -qw net.core.rmem_default="$room"
kill -STOP "$monitor"
for _ in $(seq 40); do
	"${t[@]}" job set 3 timeout 10s
done
kill -CONT "$monitor"
check "it says that events were lost" lost
check "delete that job, too" run 0 '' "${t[@]}" job del 3
kill "$monitor"
wait "$monitor" 2>/dev/null
check "nothing is left" run 0 '^\[\]$' "${t[@]}" -j job
rm -f "/tmp/$ns".*

# Debian's ip with our object
check "ip atp job add" run 0 '' "$ip" -n "$ns" atp job add 9 ps 10.0.0.1 \
	worker 10.0.0.1
check "ip atp job show" same "$ip" -n "$ns" atp job show -- \
	"${t[@]}" job show
check "ip -json atp job show" same "$ip" -n "$ns" -j atp job show -- \
	"${t[@]}" -j job show
check "ip -stats atp job show" same "$ip" -n "$ns" -s atp job show -- \
	"${t[@]}" -s job show
check "ip -json -pretty is JSON" holds 'j[0]["id"] == 9' \
	"$ip" -n "$ns" -j -p atp job show
check "ip atp job del" run 0 '' "$ip" -n "$ns" atp job del 9
end
