/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Lists from the kernel, in an order that does not depend on its hash tables.
 */
#ifndef _ATP_FETCH_H
#define _ATP_FETCH_H

#include <stdbool.h>
#include "nl.h"
#include "reply.h"

/**
 * struct job_list - jobs
 * @raw: messages, which the counters point into
 * @job: by ID
 * @count: how many
 */
struct job_list {
	struct nl_list	raw;
	struct job_reply *job;
	unsigned int	count;
};

/**
 * struct sock_list - worker sockets
 * @sock: by job and rank
 * @count: how many
 */
struct sock_list {
	struct sock_reply *sock;
	unsigned int	count;
};

/* One job if @one, else all.  Return: 0 or -2; free the list in either case */
int job_fetch(struct nl *nl, bool one, uint32_t id, struct job_list *list);
void job_list_free(struct job_list *list);

int sock_fetch(struct nl *nl, struct sock_list *list);
void sock_list_free(struct sock_list *list);

#endif /* _ATP_FETCH_H */
