# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Completion of atp(8).

# Words that may follow; job IDs and devices are asked for.
_atp_words() {
	local object=$1 command=$2 last=$3

	case $last in
	dev)
		ls /sys/class/net
		return
		;;
	uid)
		compgen -u; echo none
		return
		;;
	gid)
		compgen -g; echo none
		return
		;;
	vs)
		echo gloo mpi
		return
		;;
	ps | worker | fragment | window | scale | timeout | patience | rank | \
	interval | count | bytes | rounds)
		return
		;;
	esac
	case $object/$command in
	job/) echo add set del show stall help ;;
	job/add)
		[[ $last = add ]] ||
			echo ps worker fragment window scale timeout \
				patience uid gid server
		;;
	job/set)
		if [[ $last = set ]]; then
			_atp_jobs
		else
			echo timeout patience uid gid
		fi
		;;
	job/del | job/show | job/stall)
		[[ $last != "$command" ]] || _atp_jobs
		;;
	sock/) echo show job help ;;
	stats/) echo show job prometheus help ;;
	monitor/) echo job help ;;
	check/) echo job help ;;
	perf/) echo job rank bytes rounds vs help ;;
	perf/*) echo job rank bytes rounds vs ;;
	top/) echo batch interval count job help; _atp_jobs ;;
	switch/job) echo add replace del refresh ;;
	*/job) _atp_jobs ;;
	top/*) echo batch interval count job; _atp_jobs ;;
	sock/show) echo job rank ;;
	stats/show) echo job ;;
	stats/prometheus) [[ $last = file ]] || echo file ;;
	switch/) echo attach detach job port refresh show check help ;;
	switch/attach) echo dev aggregators payload timeout generic dispatcher ;;
	switch/detach | switch/port | switch/check) echo dev ;;
	esac
}

_atp_jobs() {
	atp job show 2>/dev/null | sed -n 's/^job \([0-9]*\).*/\1/p'
}

_atp() {
	local cur=${COMP_WORDS[COMP_CWORD]} i=1
	local object command

	COMPREPLY=()
	while [[ $i -lt $COMP_CWORD && ${COMP_WORDS[i]} = -* ]]; do
		case ${COMP_WORDS[i]} in
		-n | -netns | -b | -batch) i=$((i + 1)) ;;
		esac
		i=$((i + 1))
	done
	if [[ $i -ge $COMP_CWORD && $cur = -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W '-json -pretty -stats
			-timestamp -batch -force -netns -4 -6 -help -Version' -- "$cur")
	elif [[ $i -gt $COMP_CWORD ]]; then
		mapfile -t COMPREPLY < <(ip netns list 2>/dev/null |
			cut -d ' ' -f 1 | grep "^$cur")
	elif [[ $i -eq $COMP_CWORD ]]; then
		mapfile -t COMPREPLY < <(compgen -W \
			'job sock stats switch top monitor check perf help' -- "$cur")
	else
		object=${COMP_WORDS[i]}
		command=
		[[ $((i + 1)) -ge $COMP_CWORD ]] ||
			command=${COMP_WORDS[i + 1]}
		mapfile -t COMPREPLY < <(compgen -W "$(_atp_words "$object" \
			"$command" "${COMP_WORDS[COMP_CWORD - 1]}")" -- "$cur")
	fi
}

complete -F _atp atp
