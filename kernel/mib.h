/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counters per network namespace and per job.  The first two groups mirror the
 * engine's statistics field by field, so that one loop carries the differences
 * over.
 */
#ifndef _ATP_MIB_H
#define _ATP_MIB_H

#include <linux/percpu.h>
#include "counters.h"
#include "engine/drop.h"

struct sk_buff;

enum atp_mib_item {
#define X(name, string, help) ATP_MIB_##name,
	ATP_MIB_WORKER(X)
	ATP_MIB_PS(X)
	ATP_MIB_HOST(X)
#undef X
	ATP_MIB_DROPS,		/* reason 1 is the first of the drops */
	ATP_MIB_MAX = ATP_MIB_DROPS + ATP_DROP_MAX - 1
};

/**
 * struct atp_mib - one CPU's counters
 * @item: by enum atp_mib_item; read without lock
 */
struct atp_mib {
	unsigned long item[ATP_MIB_MAX];
};

static inline int atp_mib_drop(enum atp_drop reason)
{
	return ATP_MIB_DROPS + reason - 1;
}

u64 atp_mib_read(struct atp_mib __percpu *mib, int item);
int atp_mib_put(struct sk_buff *skb, int attr, struct atp_mib __percpu *mib);

#endif /* _ATP_MIB_H */
