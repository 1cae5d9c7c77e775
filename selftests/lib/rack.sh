#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A rack in network namespaces: W worker hosts, the PS's host, and a switch
# that is a Linux bridge with the XDP program at its ports.
#
#   atp-w0         atp-w1               atp-wN         atp-ps
#  +------------+ +------------+       +------------+ +--------------+
#  | 10.0.0.1   | | 10.0.0.2   |       | 10.0.0.N+1 | | 10.0.0.254   |
#  | fd00::1    | | fd00::2    |  ...  | fd00::N+1  | | fd00::fe     |
#  |    eth0    | |    eth0    |       |    eth0    | |     eth0     |
#  +-----|------+ +-----|------+       +-----|------+ +------|-------+
#        |              |                    |               |
#  +-----|--------------|--------------------|---------------|-------+
#  |    w0             w1                   wN              ps       |
#  |     +--------------+------ br0 ---------+---------------+       |
#  |                 10.0.0.253, fd00::fd                            |
#  +-----------------------------------------------------------------+
#   atp-switch
#
# Sourced, it offers the functions; run, it calls one of them:
#
#   rack.sh up WORKERS [MTU]            lay it out
#   rack.sh down                        take it away; never fails
#   rack.sh switch_on [ARG]...          attach the program with these words,
#                                       unless it is; set up its jobs
#   rack.sh switch_off                  detach it: a plain bridge
#   rack.sh switch_restart              detach and attach: it forgets all sums
#   rack.sh switch_resize [ARG]...      the same with other words
#   rack.sh switch_upgrade              replace the program in place, by one with
#                                       other instructions; the next time, back
#   rack.sh switch_empty                forget each job, with its sums, and add
#                                       it again
#   rack.sh job_add ID WORKERS 4|6 [ARG]...   on every host and the switch
#   rack.sh job_del ID
#   rack.sh netem HOST in|out|both [ARG]...   disturb a leg, from the host's
#                                       view; HOST: w0, ps, all; no ARG: end it
#   rack.sh link HOST up|down           plug and unplug
#   rack.sh replug HOST host|port       unplug, at that end, until somebody has
#                                       sent in vain, and plug in again
#   rack.sh ps_bytes                    received by the PS's device so far
#   rack.sh switch_counters ID          of a job, those that are not zero
#   rack.sh show                        what the PS and the switch say
#
# What XDP redirects passes no queueing discipline of the switch, so a leg from
# the switch to a host is disturbed at the host, between its device and its
# stack (ifb).

rack_top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
rack_state=/run/atp-rack

# If RACK_NICS is set, the legs of w0, w1 and ps are pairs of network cards with a
# cable between, which selftests/vm/run-vm.sh gives every machine: at the host
# 02:00:00:00:00:NN, at the switch 02:01:00:00:00:NN.

# If RACK_IP is set, "$RACK_IP atp" is the tool, else atp.
rack_tool=$rack_top/build/bin/atp
rack_next=$rack_top/build/selftests/switch/atp-switch-next

rack_die() {
	echo "rack: $*" >&2
	return 1
}

# rack_in HOST COMMAND...: ip netns exec would hide the pins in bpffs
rack_in() {
	local host=$1

	shift
	nsenter --net="/run/netns/atp-$host" -- "$@"
}

# rack_atp HOST [-OPTION]... ARG...
rack_atp() {
	local host=$1 options=()

	shift
	while [[ $1 == -* ]]; do
		options+=("$1")
		shift
	done
	if [ -n "${RACK_IP-}" ]; then
		rack_in "$host" "$RACK_IP" "${options[@]}" atp "$@"
	elif [ "$host" = switch ]; then
		rack_in "$host" "$rack_tool" "${options[@]}" "$@"
	else
		"$rack_tool" -netns "atp-$host" "${options[@]}" "$@"
	fi
}

rack_hosts() {
	local i

	for ((i = 0; i < $(<"$rack_state/workers"); i++)); do
		echo "w$i"
	done
	echo ps
}

# A process more costs ten milliseconds in an emulated machine, so these set
# REPLY instead of printing.

# rack_number HOST: the last byte of its addresses
rack_number() {
	case $1 in
	ps) REPLY=254 ;;
	switch) REPLY=253 ;;
	*) REPLY=$((${1#w} + 1)) ;;
	esac
}

# rack_addr 4|6 HOST
rack_addr() {
	rack_number "$2"
	if [ "$1" = 4 ]; then
		REPLY=10.0.0.$REPLY
	else
		printf -v REPLY 'fd00::%x' "$REPLY"
	fi
}

rack_mac() {
	rack_number "$1"
	printf -v REPLY '02:00:00:00:00:%02x' "$REPLY"
}

# rack_neigh DEV HOST...: everything that follows talks to known neighbours: a
# lost ARP request is not what is tested, and would cost a second.
rack_neigh() {
	local peer mac family

	for peer in "${@:2}"; do
		rack_mac "$peer"
		mac=$REPLY
		for family in 4 6; do
			rack_addr $family "$peer"
			echo "neigh replace $REPLY dev $1 lladdr $mac" \
				"nud permanent"
		done
	done
}

# rack_addresses DEV HOST
rack_addresses() {
	rack_addr 4 "$2"
	echo "address add $REPLY/24 dev $1"
	rack_addr 6 "$2"
	echo "address add $REPLY/64 dev $1 nodad"
}

# rack_card 00|01 HOST: the card at this end of the host's cable
rack_card() {
	local address

	rack_mac "$2"
	address=02:$1${REPLY:5}
	REPLY=$(ip -o link show |
		sed -n "s/^[0-9]*: \([^:]*\): .* $address .*/\1/p")
	[ -n "$REPLY" ] || rack_die "there is no network card $address"
}

# rack_cards MTU HOST...: plug them
rack_cards() {
	local mtu=$1 host

	shift
	modprobe virtio_net || return
	for host in "$@"; do
		rack_card 00 "$host" || return
		ip link set "$REPLY" netns "atp-$host" name eth0 || return
		ip -n "atp-$host" link set eth0 mtu "$mtu" || return
		rack_card 01 "$host" || return
		ip link set "$REPLY" netns atp-switch name "$host" || return
		ip -n atp-switch link set "$host" mtu "$mtu" || return
	done
}

rack_up() {
	local workers=$1 mtu=${2:-1500} host hosts peers

	if ! ((workers >= 1 && workers <= 32)) || ((mtu < 1280 || mtu > 3506))
	then
		rack_die "no rack of $workers workers with an MTU of $mtu"
		return
	fi
	rack_down
	mkdir -p "$rack_state"
	echo "$workers" >"$rack_state/workers"
	echo "$mtu" >"$rack_state/mtu"
	: >"$rack_state/jobs"
	mapfile -t hosts < <(rack_hosts)

	{
		echo "netns add atp-switch"
		for host in "${hosts[@]}"; do
			echo "netns add atp-$host"
		done
	} | ip -batch - || return

	if [ -n "${RACK_NICS-}" ]; then
		rack_cards "$mtu" "${hosts[@]}" || return
	fi
	{
		echo "link add br0 type bridge stp_state 0 forward_delay 0" \
			"mcast_snooping 0"
		echo "link set br0 mtu $mtu up"
		echo "link set lo up"
		rack_addresses br0 switch
		for host in "${hosts[@]}"; do
			rack_mac "$host"
			[ -n "${RACK_NICS-}" ] ||
				echo "link add $host mtu $mtu type veth" \
					"peer eth0 address $REPLY mtu $mtu" \
					"netns atp-$host"
			echo "link set $host master br0 addrgenmode none up"
		done
		rack_neigh br0 "${hosts[@]}"
	} | ip -n atp-switch -batch - || return

	for host in "${hosts[@]}"; do
		if [ "$host" = ps ]; then
			peers=("${hosts[@]}")
			unset 'peers[-1]'
		else
			peers=(ps)
		fi
		{
			echo "link set lo up"
			rack_addresses eth0 "$host"
			echo "link set eth0 up"
			rack_neigh eth0 "${peers[@]}"
		} | ip -n "atp-$host" -batch - || return
		# The switch verifies checksums, so they must be complete; and
		# a veth takes redirected packets only if GRO (or XDP) is on.
		rack_in "$host" ethtool -K eth0 tx off gro on >/dev/null ||
			return
	done
}

rack_down() {
	local ns

	rack_switch_off 2>/dev/null
	for ns in $(ip netns list | sed -n 's/^\(atp-[a-z0-9]*\).*/\1/p'); do
		ip netns pids "$ns" 2>/dev/null | xargs -r kill 2>/dev/null
		ip netns del "$ns"
	done
	rm -rf "$rack_state"
}

rack_switch_is_on() {
	[ -e "$rack_state/switch" ]
}

rack_switch_on() {
	local dev ports=() job

	if rack_switch_is_on; then
		[ "$*" != "$(<"$rack_state/switch")" ] || return 0
		rack_switch_off || return
	fi
	for dev in $(rack_hosts); do
		ports+=(dev "$dev")
	done
	rack_atp switch switch attach "${ports[@]}" "$@" || return
	echo "$*" >"$rack_state/switch"
	# What an operator's start script does
	while read -ra job; do
		rack_switch_job "${job[@]}" || return
	done < <(rack_jobs)
}

rack_switch_off() {
	rack_switch_is_on || return 0
	rack_atp switch switch detach || return
	rm -f "$rack_state/switch" "$rack_state/next"
}

rack_switch_restart() {
	local args

	args=$(<"$rack_state/switch")
	rack_switch_off || return
	# shellcheck disable=SC2086 # words
	rack_switch_on $args
}

rack_switch_resize() {
	rack_switch_off && rack_switch_on "$@"
}

rack_switch_upgrade() {
	local dev ports=()

	for dev in $(rack_hosts); do
		ports+=(dev "$dev")
	done
	if [ -e "$rack_state/next" ]; then
		rm "$rack_state/next"
		rack_atp switch switch attach "${ports[@]}"
	else
		rack_in switch "$rack_next" switch attach "${ports[@]}" &&
			touch "$rack_state/next"
	fi
}

rack_switch_empty() {
	local job

	while read -ra job; do
		rack_atp switch switch job del "${job[0]}" &&
			rack_switch_job "${job[@]}" || return
	done < <(rack_jobs)
}

# rack_members WORKERS 4|6 PS: how a job's hosts are named in every command
rack_members() {
	local i words

	rack_addr "$2" "$3"
	words=(ps "$REPLY")
	for ((i = 0; i < $1; i++)); do
		rack_addr "$2" "w$i"
		words+=(worker "$REPLY")
	done
	REPLY=${words[*]}
}

# rack_job_hosts WORKERS PS
rack_job_hosts() {
	local i

	REPLY=
	for ((i = 0; i < $1; i++)); do
		REPLY+=" w$i"
	done
	[[ "$REPLY " == *" $2 "* ]] || REPLY+=" $2"
}

rack_switch_job() {
	rack_members "${@:2}"
	# shellcheck disable=SC2086 # words
	rack_atp switch switch job add "$1" $REPLY
}

# The PS is on the host RACK_PS, if that is set.
rack_job_add() {
	local id=$1 workers=$2 family=$3 ps=${RACK_PS:-ps} members host

	shift 3
	rack_members "$workers" "$family" "$ps"
	members=$REPLY
	rack_job_hosts "$workers" "$ps"
	for host in $REPLY; do
		# shellcheck disable=SC2086 # words
		rack_atp "$host" job add "$id" $members "$@" || return
	done
	echo "$id $workers $family $ps" >>"$rack_state/jobs"
	! rack_switch_is_on ||
		rack_switch_job "$id" "$workers" "$family" "$ps"
}

# "ID WORKERS 4|6 PS" for each job
rack_jobs() {
	cat "$rack_state/jobs"
}

rack_job_del() {
	local line id="" workers family ps host others=""

	while read -r line; do
		if [[ $line == "$1 "* ]]; then
			read -r id workers family ps <<<"$line"
		else
			others+=$line$'\n'
		fi
	done <"$rack_state/jobs"
	[ -n "$id" ] || return
	printf '%s' "$others" >"$rack_state/jobs"
	! rack_switch_is_on ||
		rack_atp switch switch job del "$id" || return
	# The PS first: it tells all ranks, to whom one that has no job any more
	# is silent.
	rack_atp "$ps" job del "$id" || return
	rack_job_hosts "$workers" "$ps"
	for host in $REPLY; do
		[ "$host" = "$ps" ] || rack_atp "$host" job del "$id" || return
	done
}

# rack_netem_in HOST [ARG]...
rack_netem_in() {
	local host=$1

	shift
	if [ ! -e "$rack_state/ifb-$host" ]; then
		[ $# -gt 0 ] || return 0
		ip -n "atp-$host" -batch - <<-EOF || return
			link add ifb0 type ifb
			link set ifb0 addrgenmode none up
		EOF
		: >"$rack_state/ifb-$host"
	fi
	tc -n "atp-$host" qdisc del dev eth0 ingress 2>/dev/null
	[ $# -gt 0 ] || return 0
	tc -n "atp-$host" -batch - <<-EOF
		qdisc replace dev ifb0 root netem limit 100000 $*
		qdisc add dev eth0 ingress
		filter add dev eth0 ingress matchall action mirred egress redirect dev ifb0
	EOF
}

rack_netem_out() {
	local host=$1

	shift
	if [ $# -eq 0 ]; then
		tc -n "atp-$host" qdisc del dev eth0 root 2>/dev/null
		return 0
	fi
	tc -n "atp-$host" qdisc replace dev eth0 root netem limit 100000 "$@"
}

rack_netem() {
	local which=$1 ways=$2 host way state was

	shift 2
	[ "$which" != all ] || which=$(rack_hosts)
	[ "$ways" != both ] || ways="in out"
	for host in $which; do
		for way in $ways; do
			# Qdiscs take their time; often they are right.
			state=$rack_state/netem-$host-$way
			was=
			[ ! -e "$state" ] || was=$(<"$state")
			[ "$*" != "$was" ] || continue
			"rack_netem_$way" "$host" "$@" || return
			echo "$*" >"$state"
		done
	done
}

# rack_netem_did: "LOST LOST DOUBLED HELD HELD", packets on all legs so far; of two,
# to the hosts and from them.  netem counts those it took and, as requeues, those
# that it did not hold back.  It has doubled what leaves it on the way to hosts
# beyond what came in.
rack_netem_did() {
	local host

	for host in $(rack_hosts); do
		tc -n "atp-$host" -s qdisc show
	done | awk '$1 == "qdisc" { kind = $2; dev = $5 }
		$1 == "Sent" && kind == "ingress" { doubled -= $4 }
		$1 == "Sent" && kind == "netem" {
			lost[dev] += $7
			held[dev] += $4 - $11
			if (dev == "ifb0")
				doubled += $4 + $7
		}
		END { print lost["ifb0"] + 0, lost["eth0"] + 0, doubled + 0,
			    held["ifb0"] + 0, held["eth0"] + 0 }'
}

# rack_bad_checksums: what all hosts' IP and UDP have refused for its checksum
rack_bad_checksums() {
	local host

	for host in $(rack_hosts); do
		rack_in "$host" nstat -asz '*InCsumErrors'
	done | awk '!/^#/ { bad += $2 } END { print bad + 0 }'
}

rack_link() {
	# IPv6 takes addresses away with the link, unless it is told
	[ "$2" = up ] || rack_in "$1" sysctl -qw \
		net.ipv6.conf.eth0.keep_addr_on_down=1
	ip -n "atp-$1" link set eth0 "$2"
}

# rack_resent HOST: what its workers have sent again so far
rack_resent() {
	rack_atp "$1" stats | awk '$1 == "resent" { print $2 }'
}

rack_replug() {
	local host=$1 end=$2 worker=$1 before i

	# the first rank may be the one that waits for this command
	[ "$host" != ps ] || worker=w1
	rack_plug "$host" "$end" down || return
	before=$(rack_resent "$worker") || return
	for ((i = 0; i < 1200; i++)); do
		if [ "$(rack_resent "$worker")" -gt "$before" ]; then
			rack_plug "$host" "$end" up
			return
		fi
		sleep 0.05
	done
	rack_die "$worker does not miss $host"
}

# rack_plug HOST host|port up|down
rack_plug() {
	case $2 in
	host) rack_link "$1" "$3" ;;
	port) ip -n atp-switch link set "$1" "$3" ;;
	*) rack_die "what is $2?" ;;
	esac
}

rack_ps_bytes() {
	ip -n atp-ps -s -o link show eth0 |
		sed 's/.*RX: [^\\]*\\ *\([0-9]*\) .*/\1/'
}

# rack_switch_counters ID: "name count" for those that are not zero
rack_switch_counters() {
	rack_atp switch switch show job "$1" |
		awk '$1 != "rank" && $2 ~ /^[0-9]+$/ && $2 { print $1, $2 }'
}

# What the PS and the switch say of all jobs
rack_show() {
	rack_atp "${RACK_PS:-ps}" -stats job show
	! rack_switch_is_on || rack_atp switch switch show
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
	set -u
	verb=${1:?verb}
	shift
	"rack_$verb" "$@"
fi
