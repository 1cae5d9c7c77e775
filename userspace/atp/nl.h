/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Requests to the kernel's family and its replies.
 *
 * Functions that return a number return 0, or -2 after they have told the user
 * what is wrong, as ip(8)'s functions do.
 */
#ifndef _ATP_NL_H
#define _ATP_NL_H

#include <linux/netlink.h>
#include <stdbool.h>
#include <stdint.h>
#include "nltable.h"

#define NL_REQUEST_MAX	4096
#define NL_REPLY_MAX	32768

struct mnl_socket;

/**
 * struct nl - connection
 * @sock: socket
 * @family: number of the family
 * @events: number of its multicast group
 * @seq: of the last request
 * @error: negative errno of the last request, or 0
 * @quiet: let the caller tell the user
 * @request: last request
 * @reply: received
 */
struct nl {
	struct mnl_socket *sock;
	uint16_t	family;
	uint32_t	events;
	uint32_t	seq;
	int		error;
	bool		quiet;
	union {
		struct nlmsghdr	request;
		char		request_buf[NL_REQUEST_MAX];
	};
	union {
		struct nlmsghdr	reply;
		char		reply_buf[NL_REPLY_MAX];
	};
};

/**
 * struct nl_list - messages that were kept
 * @msg: each
 * @count: how many
 */
struct nl_list {
	struct nlmsghdr	**msg;
	unsigned int	count;
};

/* Called for each message of a reply; other than 0 ends the program's wait */
typedef int (*nl_fn)(const struct nlmsghdr *nlh, void *arg);

/* Connect; @nl is zero but for @quiet and a request that may have been begun */
int nl_open(struct nl *nl);
/* Tell the user why a quiet nl_open() found no family */
void nl_no_family(const struct nl *nl);
/* Also what is not open */
void nl_close(struct nl *nl);

/* Begin a request in @nl->request; attributes follow by mnl_attr_put_*() */
struct nlmsghdr *nl_begin(struct nl *nl, uint8_t cmd, uint16_t flags);

/* Send it and call @fn, which may be NULL, for what comes until it is done */
int nl_run(struct nl *nl, const struct nl_set *set, nl_fn fn, void *arg);

/* Receive events until @fn returns other than 0; NULL: some were lost */
int nl_listen(struct nl *nl, nl_fn fn, void *arg);

/* nl_fn that copies messages into the struct nl_list at @arg */
int nl_keep(const struct nlmsghdr *nlh, void *arg);
void nl_list_free(struct nl_list *list);

/* Tell the user that the kernel's answer makes no sense.  Return: -2 */
int nl_malformed(void);

#endif /* _ATP_NL_H */
