/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Why a packet was refused.  One line per reason makes its number, its counter
 * and its name in tracepoints and netlink.
 */
#ifndef _ATP_ENGINE_DROP_H
#define _ATP_ENGINE_DROP_H

#define ATP_DROP_REASONS(X)						   \
	X(SHORT,	"short",	"less than a header")		   \
	X(VERSION,	"version",	"another version")		   \
	X(TYPE,		"type",		"undefined type")		   \
	X(FLAGS,	"flags",	"undefined or contradicting flags") \
	X(LENGTH,	"length",	"not as long as the header says")  \
	X(CHECKSUM,	"checksum",	"no UDP checksum")		   \
	X(FRAGMENT,	"fragment",	"was fragmented by IP")		   \
	X(OPTIONS,	"options",	"IP options or extension headers") \
	X(DTYPE,	"dtype",	"undefined data type")		   \
	X(FANIN,	"fanin",	"fan-in or tree not the job's")	   \
	X(BITMAP,	"bitmap",	"no or undefined workers")	   \
	X(ELEMENTS,	"elements",	"more or fewer lanes than due")	   \
	X(JOB,		"job",		"no such job here")		   \
	X(EPOCH,	"epoch",	"another run")			   \
	X(STRANGER,	"stranger",	"sender is not of the job")	   \
	X(OLD,		"old",		"fragment nobody needs any more")  \
	X(FUTURE,	"future",	"fragment beyond every window")	   \
	X(DUPLICATE,	"duplicate",	"values were there already")	   \
	X(OVERLAP,	"overlap",	"partial sum of known and new")	   \
	X(DISAGREE,	"disagree",	"ranks push different chunks")	   \
	X(UNSENT,	"unsent",	"answer to what was never sent")   \
	X(NONCE,	"nonce",	"of another join")		   \
	X(MISMATCH,	"mismatch",	"worker is configured otherwise")  \
	X(STATE,	"state",	"not in this state")		   \
	X(RAWFULL,	"rawfull",	"no room for raw values now")	   \
	X(NOMEM,	"nomem",	"no memory")			   \
	X(BACKLOG,	"backlog",	"socket backlog is full")	   \
	X(ICMP,		"icmp",		"error that quotes nothing of a run")

/* Result of looking at a packet: ATP_OK if it was used, everything else names
 * the reason why it was not.
 */
enum atp_drop {
	ATP_OK = 0,
#define X(name, string, help) ATP_DROP_##name,
	ATP_DROP_REASONS(X)
#undef X
	ATP_DROP_MAX
};

#endif /* _ATP_ENGINE_DROP_H */
