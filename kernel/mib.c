// SPDX-License-Identifier: GPL-2.0
/* Counters: names, sums over CPUs, and their netlink form. */
#include <net/netlink.h>
#include <linux/atp_netlink.h>
#include "mib.h"

static const char *const mib_names[ATP_MIB_MAX] = {
#define X(name, string, help) \
	[ATP_MIB_##name] = string,
	ATP_MIB_WORKER(X)
	ATP_MIB_PS(X)
	ATP_MIB_HOST(X)
#undef X
#define X(name, string, help) \
	[ATP_MIB_DROPS + ATP_DROP_##name - 1] = "drop_" string,
	ATP_DROP_REASONS(X)
#undef X
};

u64 atp_mib_read(struct atp_mib __percpu *mib, int item)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(mib, cpu)->item[item]);
	return sum;
}

/* Nest of entries, each with name and value. */
int atp_mib_put(struct sk_buff *skb, int attr, struct atp_mib __percpu *mib)
{
	struct nlattr *nest, *entry;
	int i;

	nest = nla_nest_start(skb, attr);
	if (!nest)
		return -EMSGSIZE;
	for (i = 0; i < ATP_MIB_MAX; i++) {
		entry = nla_nest_start(skb, ATP_A_COUNTER_ENTRY);
		if (!entry ||
		    nla_put_string(skb, ATP_A_COUNTER_NAME, mib_names[i]) ||
		    nla_put_u64_64bit(skb, ATP_A_COUNTER_VALUE,
				      atp_mib_read(mib, i), ATP_A_COUNTER_PAD))
			goto cancel;
		nla_nest_end(skb, entry);
	}
	nla_nest_end(skb, nest);
	return 0;

cancel:
	nla_nest_cancel(skb, nest);
	return -EMSGSIZE;
}
