/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Asks a job's PS for a sign of life, by a packet that changes nothing: a
 * gradient of a run that there is not.  The PS answers each with an ABORT of
 * that run, as it would a worker's that has missed the end of one, and no run
 * of the job is touched.
 */
#ifndef _ATP_PROBE_H
#define _ATP_PROBE_H

#include <stdint.h>
#include "reply.h"

/**
 * struct probe - one that asks
 * @job: what to ask about
 * @rank: as whom: a rank of this host
 * @fd: raw socket
 * @epoch: of the last question
 */
struct probe {
	const struct job_reply *job;
	unsigned int	rank;
	int		fd;
	uint32_t	epoch;
};

/**
 * enum probe_result - what became of a question
 * @PROBE_ANSWER: the PS has answered
 * @PROBE_SILENCE: nothing came, though it was asked several times
 * @PROBE_REFUSED: the PS's host has nobody at that port
 * @PROBE_TOO_LONG: the packet does not fit the path
 * @PROBE_FAILED: errno says why
 */
enum probe_result {
	PROBE_ANSWER,
	PROBE_SILENCE,
	PROBE_REFUSED,
	PROBE_TOO_LONG,
	PROBE_FAILED,
};

/* Return: 0, or -1 with errno; needs CAP_NET_RAW */
int probe_open(struct probe *p, const struct job_reply *job,
	       unsigned int rank);
void probe_close(struct probe *p);

/* Ask with a fragment of so many bytes, which no switch keeps */
enum probe_result probe_ask(struct probe *p, unsigned int bytes);

/**
 * probe_held() - does a switch on the way add this job's fragments?
 * @p: one that was answered
 * @held: result
 */
enum probe_result probe_held(struct probe *p, bool *held);

#endif /* _ATP_PROBE_H */
