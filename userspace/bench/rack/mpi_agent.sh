#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What mpirun calls instead of ssh: run a command on the host of the rack that
# has this address.  Open MPI tells hosts apart by name, so each gets one.
#
# usage: mpi_agent.sh 10.0.0.N COMMAND...

host=w$((${1##*.} - 1))
shift
exec nsenter --net="/run/netns/atp-$host" unshare --uts \
	bash -c "hostname $host; $*"
