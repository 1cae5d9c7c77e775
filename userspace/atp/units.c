// SPDX-License-Identifier: GPL-2.0
/* Durations and numbers with units. */
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "units.h"
#include "utils.h"

#define US_PER_MS	1000ULL
#define US_PER_S	1000000ULL
#define US_PER_MIN	60000000ULL

/* A decimal number without sign; *end is behind it. */
static int number_parse(const char *text, double *value, char **end)
{
	if (*text < '0' || *text > '9')
		return -1;
	/* no hexadecimal floats */
	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		return -1;
	*value = strtod(text, end);
	return isfinite(*value) ? 0 : -1;
}

int duration_parse(const char *text, uint32_t *ms)
{
	static const struct {
		const char *name;
		double ms;
	} units[] = {
		{ "", 1 }, { "ms", 1 }, { "s", 1000 }, { "sec", 1000 },
		{ "min", 60000 },
	};
	double value;
	size_t i;
	char *end;

	if (number_parse(text, &value, &end))
		return -1;
	for (i = 0; i < ARRAY_SIZE(units); i++) {
		if (strcmp(end, units[i].name))
			continue;
		value = round(value * units[i].ms);
		if (value > UINT32_MAX)
			return -1;
		*ms = value;
		return 0;
	}
	return -1;
}

int scale_parse(const char *text, uint32_t *scale)
{
	double value;
	char *end;

	if (number_parse(text, &value, &end) || *end)
		return -1;
	if (value < 1 || value > UINT32_MAX || value != floor(value))
		return -1;
	*scale = value;
	return 0;
}

/* @us in units of @unit with up to three decimals that are not zero. */
static const char *duration_decimals(uint64_t us, uint64_t unit,
				     const char *name, char *buf)
{
	unsigned int thousandths = us % unit * 1000 / unit;
	int len;

	if (!thousandths) {
		snprintf(buf, DURATION_LEN, "%" PRIu64 "%s", us / unit, name);
		return buf;
	}
	len = snprintf(buf, DURATION_LEN, "%" PRIu64 ".%03u", us / unit,
		       thousandths);
	while (buf[len - 1] == '0')
		len--;
	snprintf(buf + len, DURATION_LEN - len, "%s", name);
	return buf;
}

const char *duration_text(uint64_t us, char buf[DURATION_LEN])
{
	uint64_t seconds = us / US_PER_S;

	if (us < US_PER_MS)
		snprintf(buf, DURATION_LEN, "%" PRIu64 "us", us);
	else if (us < US_PER_S)
		return duration_decimals(us, US_PER_MS, "ms", buf);
	else if (us < US_PER_MIN)
		return duration_decimals(us, US_PER_S, "s", buf);
	else if (seconds % 60)
		snprintf(buf, DURATION_LEN, "%" PRIu64 "min %" PRIu64 "s",
			 seconds / 60, seconds % 60);
	else
		snprintf(buf, DURATION_LEN, "%" PRIu64 "min", seconds / 60);
	return buf;
}

int64_t clock_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}
