/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Names, types and lengths of netlink attributes.
 */
#ifndef _ATP_NLTABLE_H
#define _ATP_NLTABLE_H

#include <stdbool.h>

#ifndef ARRAY_SIZE
#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))
#endif

/**
 * enum nl_type - what an attribute holds
 * @NL_UNKNOWN: there is no attribute of this number
 * @NL_U8: scalar
 * @NL_U16: scalar
 * @NL_U32: scalar
 * @NL_U64: scalar
 * @NL_STRING: string with its zero
 * @NL_BINARY: bytes
 * @NL_NEST: attributes
 * @NL_PAD: nothing
 */
enum nl_type {
	NL_UNKNOWN,
	NL_U8,
	NL_U16,
	NL_U32,
	NL_U64,
	NL_STRING,
	NL_BINARY,
	NL_NEST,
	NL_PAD,
};

struct nl_set;

/**
 * struct nl_attr - one attribute
 * @name: as messages to the user call it
 * @type: what it holds
 * @len: exact length of @NL_BINARY; 0 if that may vary
 * @multi: may be there more than once
 * @nested: what is in a nest
 */
struct nl_attr {
	const char		*name;
	enum nl_type		type;
	unsigned int		len;
	bool			multi;
	const struct nl_set	*nested;
};

/**
 * struct nl_set - attribute space
 * @name: name
 * @attrs: by number; 0 is not used
 * @max: highest number
 */
struct nl_set {
	const char		*name;
	const struct nl_attr	*attrs;
	unsigned int		max;
};

/**
 * struct nl_enum - enumerators
 * @names: by value, may have holes
 * @count: number of @names
 */
struct nl_enum {
	const char * const	*names;
	unsigned int		count;
};

#endif /* _ATP_NLTABLE_H */
