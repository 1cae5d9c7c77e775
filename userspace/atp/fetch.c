// SPDX-License-Identifier: GPL-2.0
/* Fetches jobs and sockets, and sorts them. */
#include <libmnl/libmnl.h>
#include <linux/atp_netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "fetch.h"
#include "netlink_gen.h"

static int no_memory(void)
{
	fprintf(stderr, "Error: no memory.\n");
	return -2;
}

static int job_compare(const void *a, const void *b)
{
	uint32_t left = ((const struct job_reply *)a)->id;
	uint32_t right = ((const struct job_reply *)b)->id;

	return left < right ? -1 : left > right;
}

static int job_unpack(struct job_list *list)
{
	unsigned int i;

	list->job = calloc(list->raw.count + 1, sizeof(*list->job));
	if (!list->job)
		return no_memory();
	for (i = 0; i < list->raw.count; i++) {
		if (job_parse(list->raw.msg[i], &list->job[i]))
			return nl_malformed();
		list->count++;
	}
	qsort(list->job, list->count, sizeof(*list->job), job_compare);
	return 0;
}

int job_fetch(struct nl *nl, bool one, uint32_t id, struct job_list *list)
{
	struct nlmsghdr *nlh;
	int err;

	memset(list, 0, sizeof(*list));
	nlh = nl_begin(nl, ATP_CMD_JOB_GET, one ? 0 : NLM_F_DUMP);
	if (one)
		mnl_attr_put_u32(nlh, ATP_A_JOB_ID, id);
	err = nl_run(nl, &atp_set_job, nl_keep, &list->raw);
	return err ? err : job_unpack(list);
}

void job_list_free(struct job_list *list)
{
	nl_list_free(&list->raw);
	free(list->job);
}

static int sock_compare(const void *a, const void *b)
{
	const struct sock_reply *left = a, *right = b;

	if (left->job != right->job)
		return left->job < right->job ? -1 : 1;
	return left->rank < right->rank ? -1 : left->rank > right->rank;
}

static int sock_unpack(const struct nl_list *raw, struct sock_list *list)
{
	unsigned int i;

	list->sock = calloc(raw->count + 1, sizeof(*list->sock));
	if (!list->sock)
		return no_memory();
	for (i = 0; i < raw->count; i++) {
		if (sock_parse(raw->msg[i], &list->sock[i]))
			return nl_malformed();
		list->count++;
	}
	qsort(list->sock, list->count, sizeof(*list->sock), sock_compare);
	return 0;
}

int sock_fetch(struct nl *nl, struct sock_list *list)
{
	struct nl_list raw = { 0 };
	int err;

	memset(list, 0, sizeof(*list));
	nl_begin(nl, ATP_CMD_SOCK_GET, NLM_F_DUMP);
	err = nl_run(nl, &atp_set_sock, nl_keep, &raw);
	if (!err)
		err = sock_unpack(&raw, list);
	nl_list_free(&raw);
	return err;
}

void sock_list_free(struct sock_list *list)
{
	free(list->sock);
}
