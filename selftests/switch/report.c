// SPDX-License-Identifier: GPL-2.0
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "report.h"

#define MOST	20

unsigned int c_failures;

void c_fail(const char *file, int line, const char *fmt, ...)
{
	va_list args;

	if (++c_failures > MOST)
		return;
	printf("# %s:%d: ", file, line);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf("\n");
}

void c_give_up(void)
{
	exit(EXIT_FAILURE);
}
