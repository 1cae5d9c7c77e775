/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The fuzzer's bytes as decisions.  Past the end everything is zero, so that a
 * shorter input is a simpler one.
 */
#ifndef _FUZZ_BYTES_H
#define _FUZZ_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct bytes {
	const uint8_t *at;
	size_t left;
};

static inline uint8_t byte(struct bytes *b)
{
	if (!b->left)
		return 0;
	b->left--;
	return *b->at++;
}

static inline uint16_t word(struct bytes *b)
{
	uint16_t high = byte(b);

	return (uint16_t)(high << 8 | byte(b));
}

static inline uint32_t dword(struct bytes *b)
{
	uint32_t high = word(b);

	return high << 16 | word(b);
}

/* 0 to n - 1, n at most 256 */
static inline uint32_t below(struct bytes *b, uint32_t n)
{
	return byte(b) % n;
}

/* The next bytes, at most @len of them.  Return: how many there were */
static inline size_t take(struct bytes *b, void *to, size_t len)
{
	if (len > b->left)
		len = b->left;
	if (len)
		memcpy(to, b->at, len);
	b->at += len;
	b->left -= len;
	return len;
}

#endif /* _FUZZ_BYTES_H */
