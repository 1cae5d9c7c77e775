/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Names of interfaces may hold any bytes, but JSON and Prometheus want UTF-8.
 */
#ifndef _ATP_SWITCH_UTF8_H
#define _ATP_SWITCH_UTF8_H

#include <stdint.h>

/* How many bytes the character has that begins here; zero if it is none */
static inline int sw_utf8_len(const char *text)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const uint8_t *c = (const uint8_t *)text;
	uint32_t code;
	int len, i;

	if (*c < 0x80)
		return 1;
	len = *c >= 0xf0 ? 4 : *c >= 0xe0 ? 3 : 2;
	if (*c < 0xc0 || *c > 0xf7)
		return 0;
	code = *c & (0x7f >> len);
	for (i = 1; i < len; i++) {
		if ((c[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (c[i] & 0x3f);
	}
	if (code < least[len] || code > 0x10ffff ||
	    (code >= 0xd800 && code < 0xe000))
		return 0;
	return len;
}

#endif /* _ATP_SWITCH_UTF8_H */
