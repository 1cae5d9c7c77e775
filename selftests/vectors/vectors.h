/* SPDX-License-Identifier: GPL-2.0 */
/* Reads selftests/vectors/packets for tests in C. */
#ifndef _SELFTESTS_VECTORS_H
#define _SELFTESTS_VECTORS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VECTOR_MAX	4096

/**
 * struct vector - a packet and what is to become of it
 * @name: for messages
 * @host: reason of the PS
 * @on_switch: what a switch does
 * @len: bytes in @data
 * @data: UDP payload
 */
struct vector {
	char	name[64];
	char	host[32];
	char	on_switch[32];
	size_t	len;
	uint8_t	data[VECTOR_MAX];
};

/* Return: the next one is there.  A line that is wrong ends the program. */
static inline int vector_read(FILE *f, struct vector *v)
{
	static char line[2 * VECTOR_MAX + 256], hex[2 * VECTOR_MAX + 1];
	unsigned int byte;
	size_t i;

	do {
		if (!fgets(line, sizeof(line), f))
			return 0;
	} while (*line == '#');
	if (sscanf(line, "%63s %31s %31s %8192s", v->name, v->host,
		   v->on_switch, hex) != 4 || strlen(hex) % 2 > (*hex == '-')) {
		fprintf(stderr, "not a vector: %s", line);
		exit(1);
	}
	v->len = *hex == '-' ? 0 : strlen(hex) / 2;
	for (i = 0; i < v->len; i++) {
		if (sscanf(hex + 2 * i, "%2x", &byte) != 1) {
			fprintf(stderr, "no hex: %s\n", v->name);
			exit(1);
		}
		v->data[i] = (uint8_t)byte;
	}
	return 1;
}

#endif /* _SELFTESTS_VECTORS_H */
