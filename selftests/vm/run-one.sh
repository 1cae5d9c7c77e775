#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Run one test in its suite's folder, keep its output, count its results.
#
# usage: run-one.sh LOG TIMEOUT SUITE COMMAND [ARG]...
#
# Writes LOG and LOG.result (see tap.awk). COMMAND is looked for in the
# suite's folder, then in what its Makefile built.

set -u

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
log=$1
limit=$2
suite=$3
command=$4
shift 4

# Of one result of a C program; longer where everything takes longer
export TAP_TIMEOUT=$((limit > 600 ? limit / 5 : 120))

cd "${SUITES:-$top/selftests}/$suite" || exit 125
if [ -x "$command" ]; then
	command=./$command
else
	command=$top/build/selftests/$suite/$command
fi

# A session of its own, so that what the test leaves behind can be ended.
setsid timeout -k 10 "$limit" "$command" "$@" </dev/null >"$log" 2>&1 &
pid=$!
trap 'kill -KILL -- "-$pid" 2>/dev/null; exit 143' TERM
wait "$pid"
status=$?
kill -KILL -- "-$pid" 2>/dev/null
case $status in
124 | 137) echo "# TIMEOUT after $limit s" >>"$log" ;;
126 | 127) echo "# cannot run $command" >>"$log" ;;
esac
awk -v status="$status" -f "$here/tap.awk" "$log" >"$log.result.new"
mv "$log.result.new" "$log.result"
