/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Netlink attributes from bytes that nobody has looked at yet.
 */
#ifndef _ATP_NLPARSE_H
#define _ATP_NLPARSE_H

#include <linux/netlink.h>
#include <stddef.h>
#include <stdint.h>
#include "nltable.h"

/**
 * nl_parse() - check attributes and tell where they are
 * @buf: attributes
 * @len: their length
 * @set: what they are
 * @tb: by number, the first of each kind or NULL; @set->max + 1 long
 *
 * Nests are checked to their ends, so what lies in them can be walked with
 * libmnl's loops afterwards.  Attributes of newer kernels are passed over.
 *
 * Return: 0, or -1 if a length or a nesting is wrong.
 */
int nl_parse(const void *buf, size_t len, const struct nl_set *set,
	     const struct nlattr **tb);

/* Like nl_parse(), of a message with a generic netlink header */
int nl_parse_msg(const struct nlmsghdr *nlh, const struct nl_set *set,
		 const struct nlattr **tb);

/* Like nl_parse(), of a nest */
int nl_parse_nest(const struct nlattr *nest, const struct nl_set *set,
		  const struct nlattr **tb);

/**
 * nl_path() - name the attribute at an offset in a message
 * @nlh: message of this program
 * @offset: from its start
 * @set: what its attributes are
 * @buf: result, like "worker 3 addr"; empty if there is none
 * @size: its size
 */
void nl_path(const struct nlmsghdr *nlh, unsigned int offset,
	     const struct nl_set *set, char *buf, size_t size);

/* Return: name of an attribute, or NULL */
const char *nl_attr_name(const struct nl_set *set, unsigned int type);

/* Return: name of an enumerator, or NULL */
const char *nl_enum_name(const struct nl_enum *names, unsigned int value);

#endif /* _ATP_NLPARSE_H */
