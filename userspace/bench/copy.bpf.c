// SPDX-License-Identifier: GPL-2.0
/*
 * The switch's programs once more, as BPF_PROG_RUN takes the one at a port's
 * end: it refuses programs of a devmap, and only those know the port by which a
 * packet leaves.  Here that is the port by which it has come.  The loader says
 * that it is none of a devmap, and puts the switch's own maps in.
 */
#include <linux/bpf.h>

#define egress_ifindex	ingress_ifindex
#include "atp_switch.bpf.c"
