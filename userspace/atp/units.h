/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Durations and numbers with units.
 */
#ifndef _ATP_UNITS_H
#define _ATP_UNITS_H

#include <stdint.h>

#define DURATION_LEN	32

/* Milliseconds: "1500", "1500ms", "1.5s", "2min".  Return: 0, or -1 */
int duration_parse(const char *text, uint32_t *ms);

/* "850us", "1.5ms", "30s", "2min 5s" in @buf.  Return: @buf */
const char *duration_text(uint64_t us, char buf[DURATION_LEN]);

/* A positive integer, "100000000" or "1e8".  Return: 0, or -1 */
int scale_parse(const char *text, uint32_t *scale);

/* Milliseconds of a clock that nobody sets */
int64_t clock_ms(void);

#endif /* _ATP_UNITS_H */
