/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the kernel says about a request that it refused.
 */
#ifndef _ATP_NLERROR_H
#define _ATP_NLERROR_H

#include <linux/netlink.h>
#include <stddef.h>
#include "nltable.h"

/**
 * nl_error() - read the end of an answer
 * @reply: message of type NLMSG_ERROR or NLMSG_DONE
 * @request: what it answers
 * @set: attributes of the request
 * @buf: result: the kernel's text, with the attribute that it is about
 * @size: its size
 *
 * Return: 0 for success, or a negative errno; -EBADMSG if @reply is broken.
 */
int nl_error(const struct nlmsghdr *reply, const struct nlmsghdr *request,
	     const struct nl_set *set, char *buf, size_t size);

#endif /* _ATP_NLERROR_H */
