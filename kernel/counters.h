/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is counted per network namespace and per job.  One line per counter
 * makes its number, its name and what is told of it: the tool and its man page
 * have these texts, and those of the drop reasons, from here.
 */
#ifndef _ATP_COUNTERS_H
#define _ATP_COUNTERS_H

/* struct atp_worker_stats, in its order */
#define ATP_MIB_WORKER(X)						   \
	X(SENT,		"sent",		"fragments sent for the first time") \
	X(RESENT,	"resent",	"fragments sent again")		   \
	X(FAST,		"fast_retransmits", "losses seen by later answers") \
	X(TIMEOUTS,	"timeouts",	"losses seen by the timer")	   \
	X(SPURIOUS,	"spurious_timeouts", "timeouts when peers were late")  \
	X(ECN,		"worker_ecn",	"results with a congestion mark")  \
	X(RAW,		"worker_raw",	"fragments on the overflow path")  \
	X(DUPLICATES,	"duplicates",	"results received before")	   \
	X(CHUNKS,	"chunks",	"pushed chunks completed")

/* struct atp_ps_stats, in its order */
#define ATP_MIB_PS(X)							   \
	X(SWITCH_FRAGS,	"switch_fragments", "additions made by switches")  \
	X(PS_FRAGS,	"ps_fragments",	"additions made by the PS")	   \
	X(COMPLETED,	"completed",	"fragments completed")		   \
	X(PS_RAW,	"raw",		"completed on the overflow path")  \
	X(RESENDS,	"resends",	"resent fragments received")	   \
	X(CACHED,	"cached",	"resent fragments that were complete") \
	X(COLLISIONS,	"collisions",	"fragments that met a collision")  \
	X(PS_ECN,	"ecn",		"fragments with a congestion mark") \
	X(RUNS,		"runs",		"runs begun")			   \
	X(ABORTS,	"aborts",	"runs ended by failure")

/* Counted by the kernel side itself */
#define ATP_MIB_HOST(X)							   \
	X(IN_PACKETS,	"in_packets",	"packets received")		   \
	X(IN_BURSTS,	"in_bursts",	"bursts that came in whole")	   \
	X(OUT_PACKETS,	"out_packets",	"packets sent")			   \
	X(OUT_BURSTS,	"out_bursts",	"bursts of several packets sent") \
	X(OUT_MULTICAST, "out_multicast", "packets for switches to copy")  \
	X(OUT_ERRORS,	"out_errors",	"packets that did not leave")	   \
	X(OUT_HELD,	"out_held",	"sendings put off: send buffer full") \
	X(OUT_NOMEM,	"out_nomem",	"sendings that had no memory")	   \
	X(ERR_NOMEM,	"errqueue_nomem", "messages of the error queue lost")  \
	X(EVENT_NOMEM,	"event_nomem",	"events lost: no memory")

#endif /* _ATP_COUNTERS_H */
