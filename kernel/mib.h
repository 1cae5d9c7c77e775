/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counters per network namespace and per job.  One line per counter makes its
 * number and its name; the first two groups mirror the engine's statistics
 * field by field, so that one loop carries the differences over.
 */
#ifndef _ATP_MIB_H
#define _ATP_MIB_H

#include <linux/percpu.h>
#include "engine/drop.h"

struct sk_buff;

/* struct atp_worker_stats, in its order */
#define ATP_MIB_WORKER(X)			\
	X(SENT,		"sent")			\
	X(RESENT,	"resent")		\
	X(FAST,		"fast_retransmits")	\
	X(TIMEOUTS,	"timeouts")		\
	X(SPURIOUS,	"spurious_timeouts")	\
	X(ECN,		"worker_ecn")		\
	X(RAW,		"worker_raw")		\
	X(DUPLICATES,	"duplicates")		\
	X(CHUNKS,	"chunks")

/* struct atp_ps_stats, in its order */
#define ATP_MIB_PS(X)				\
	X(SWITCH_FRAGS,	"switch_fragments")	\
	X(PS_FRAGS,	"ps_fragments")		\
	X(COMPLETED,	"completed")		\
	X(PS_RAW,	"raw")			\
	X(RESENDS,	"resends")		\
	X(CACHED,	"cached")		\
	X(COLLISIONS,	"collisions")		\
	X(PS_ECN,	"ecn")			\
	X(RUNS,		"runs")			\
	X(ABORTS,	"aborts")

/* Counted by the kernel side itself */
#define ATP_MIB_HOST(X)				\
	X(IN_PACKETS,	"in_packets")		\
	X(OUT_PACKETS,	"out_packets")		\
	X(OUT_BURSTS,	"out_bursts")		\
	X(OUT_MULTICAST, "out_multicast")	\
	X(OUT_ERRORS,	"out_errors")		\
	X(OUT_HELD,	"out_held")		\
	X(OUT_NOMEM,	"out_nomem")

enum atp_mib_item {
#define X(name, string) ATP_MIB_##name,
	ATP_MIB_WORKER(X)
	ATP_MIB_PS(X)
	ATP_MIB_HOST(X)
#undef X
	ATP_MIB_DROPS,		/* reason 1 is the first of the drops */
	ATP_MIB_MAX = ATP_MIB_DROPS + ATP_DROP_MAX - 1
};

/**
 * struct atp_mib - one CPU's counters
 * @item: by enum atp_mib_item
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
