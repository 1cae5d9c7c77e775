/* SPDX-License-Identifier: GPL-2.0 */
/* Reads selftests/vectors/packets, which says what it means, for tests in C. */
#ifndef _SELFTESTS_VECTORS_H
#define _SELFTESTS_VECTORS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VECTOR_MAX	4096

/* Hosts that are no rank's */
#define VECTOR_PS	100
#define VECTOR_STRANGER	101

/**
 * struct vector - a packet and what is to become of it
 * @workers: of the job
 * @fragment: bytes of a fragment of the job
 * @window: of the job
 * @state: of the workers
 * @name: for messages
 * @goes_on: follows the packets with the same name before it
 * @from: whose packet it is: a rank, VECTOR_PS or VECTOR_STRANGER
 * @to: rank 1 or VECTOR_PS
 * @host: reason of the host that it goes to, or "ok"
 * @on_switch: what a switch does
 * @len: bytes in @data
 * @data: UDP payload
 */
struct vector {
	unsigned int workers;
	unsigned int fragment;
	unsigned int window;
	char	state[32];
	char	name[64];
	bool	goes_on;
	int	from;
	int	to;
	char	host[32];
	char	on_switch[32];
	size_t	len;
	uint8_t	data[VECTOR_MAX];
};

static inline void vector_bad(const char *line)
{
	fprintf(stderr, "not a vector: %s", line);
	exit(1);
}

static inline int vector_host(const char *word, const char *line)
{
	if (!strcmp(word, "ps"))
		return VECTOR_PS;
	if (!strcmp(word, "x"))
		return VECTOR_STRANGER;
	if (*word < '0' || *word > '9' || word[1])
		vector_bad(line);
	return *word - '0';
}

static inline void vector_bytes(struct vector *v, const char *hex,
				const char *line)
{
	unsigned int byte;
	size_t i;

	if (!strcmp(hex, "-"))
		hex = "";
	if (strlen(hex) % 2)
		vector_bad(line);
	v->len = strlen(hex) / 2;
	for (i = 0; i < v->len; i++) {
		if (sscanf(hex + 2 * i, "%2x", &byte) != 1)
			vector_bad(line);
		v->data[i] = (uint8_t)byte;
	}
}

/* The next packet into @v, which is zero before the first.  Return: is there
 * one?  A line that is wrong ends the program.
 */
static inline bool vector_read(FILE *f, struct vector *v)
{
	static char line[2 * VECTOR_MAX + 256], hex[2 * VECTOR_MAX + 1];
	char name[64], from[3], to[3];

	for (;;) {
		if (!fgets(line, sizeof(line), f))
			return false;
		if (*line == '#')
			continue;
		if (sscanf(line, "job %u %u %u %31s\n", &v->workers,
			   &v->fragment, &v->window, v->state) != 4)
			break;
		*v->name = 0;
	}
	if (!v->workers ||
	    sscanf(line, "%63s %2[^>]>%2s %31s %31s %8192s", name, from, to,
		   v->host, v->on_switch, hex) != 6)
		vector_bad(line);
	v->from = vector_host(from, line);
	v->to = vector_host(to, line);
	if (v->to != 1 && v->to != VECTOR_PS)
		vector_bad(line);
	v->goes_on = !strcmp(name, v->name);
	strcpy(v->name, name);
	vector_bytes(v, hex, line);
	return true;
}

#endif /* _SELFTESTS_VECTORS_H */
