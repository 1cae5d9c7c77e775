// SPDX-License-Identifier: GPL-2.0
/*
 * How much memory the sockets of the family may hold, in /proc/sys/net/atp/:
 *
 *   mem    pages of all sockets together: no pressure below the first, pressure
 *          from the second on, none above the third, as for TCP
 *   wmem   bytes of a send buffer: least (held under pressure whatever the
 *          share of a socket is), default
 *   rmem   bytes that may wait for a socket that is in use: default
 *
 * They are the host's, so only the initial network namespace shows them.
 */
#include <linux/mm.h>
#include <linux/sysctl.h>
#include <net_sysctl.h>
#include "atp.h"

long atp_mem[3];
int atp_wmem[2] = { PAGE_SIZE, ATP_SNDBUF };
int atp_rmem = 256 << 10;

static int atp_buf_min = PAGE_SIZE;

static struct ctl_table atp_limits[] = {
	{
		.procname	= "mem",
		.data		= atp_mem,
		.maxlen		= sizeof(atp_mem),
		.mode		= 0644,
		.proc_handler	= proc_doulongvec_minmax,
	},
	{
		.procname	= "wmem",
		.data		= atp_wmem,
		.maxlen		= sizeof(atp_wmem),
		.mode		= 0644,
		.proc_handler	= proc_dointvec_minmax,
		.extra1		= &atp_buf_min,
	},
	{
		.procname	= "rmem",
		.data		= &atp_rmem,
		.maxlen		= sizeof(atp_rmem),
		.mode		= 0644,
		.proc_handler	= proc_dointvec_minmax,
		.extra1		= &atp_buf_min,
	},
	{ }	/* where it must be ended: compat/net_sysctl.h */
};

static struct ctl_table_header *atp_limits_header;

/* A share of the memory that is free now, as TCP takes for itself. */
int atp_limits_register(void)
{
	unsigned long limit = max(nr_free_buffer_pages() / 16, 128UL);

	atp_mem[0] = limit / 4 * 3;
	atp_mem[1] = limit;
	atp_mem[2] = atp_mem[0] * 2;
	atp_limits_header = register_net_sysctl_sz(&init_net, "net/atp",
						   atp_limits,
						   ARRAY_SIZE(atp_limits) - 1);
	return atp_limits_header ? 0 : -ENOMEM;
}

void atp_limits_unregister(void)
{
	unregister_net_sysctl_table(atp_limits_header);
}
