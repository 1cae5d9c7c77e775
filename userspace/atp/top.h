/* SPDX-License-Identifier: GPL-2.0 */
/*
 * atp top: what happened between two moments, and ways to show it.
 */
#ifndef _ATP_TOP_H
#define _ATP_TOP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "snapshot.h"

/**
 * struct top - an interval
 * @before: its begin
 * @now: its end
 * @one: show a single job
 * @job: which
 */
struct top {
	struct snapshot	before;
	struct snapshot	now;
	bool		one;
	uint32_t	job;
};

/* top_rate.c: counts per second, over the interval */
uint64_t top_interval(const struct top *top);
uint64_t top_per_second(const struct top *top, uint64_t now, uint64_t before);
uint64_t top_job_rate(const struct top *top, const struct job_reply *job,
		      const char *counter);
uint64_t top_host_rate(const struct top *top, const char *counter);
/* Packets refused, whatever the reason */
uint64_t top_drop_rate(const struct top *top);

/**
 * struct top_sock - a worker socket over the interval
 * @sent: fragments per second
 * @resent: fragments per second
 * @answered: fragments per second that got their result
 * @goodput: bytes per second, each of these for a full fragment
 */
struct top_sock {
	uint64_t	sent;
	uint64_t	resent;
	uint64_t	answered;
	uint64_t	goodput;
};

void top_sock(const struct top *top, const struct sock_reply *sock,
	      struct top_sock *rate);

/**
 * struct top_job - a job over the interval
 * @completed: fragments per second: by the PS, or answered to a worker
 * @goodput: bytes per second, each of these for a full fragment
 * @waiting: ranks that are waited for, as far as it is known here
 * @server: so is the application at the PS
 * @stall: for so many milliseconds, if the PS is here
 */
struct top_job {
	uint64_t	completed;
	uint64_t	goodput;
	uint32_t	waiting;
	bool		server;
	uint32_t	stall;
};

void top_job(const struct top *top, const struct job_reply *job,
	     struct top_job *rate);

/* The counters of the switch's job at the begin; zeros if it was not there */
const struct sw_counters *top_switch_before(const struct top *top,
					    uint32_t id);

bool top_wanted(const struct top *top, uint32_t id);

/* Ways to show it */
void top_text(const struct top *top, FILE *to);
void top_json(const struct top *top);

/* top_screen.c: a terminal; 0, or -1 if it cannot be used */
int top_screen_open(void);
void top_screen_close(void);
void top_screen_draw(const struct top *top);
/* Wait for the time to pass, or a key.  Return: true if the user is done */
bool top_screen_wait(uint32_t ms);

#endif /* _ATP_TOP_H */
