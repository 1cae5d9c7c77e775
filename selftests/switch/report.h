/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Failures that are found outside the file that is the test: tap.h counts for
 * the file that includes it only, so these are counted here and fail the test
 * in c_close().
 */
#ifndef _SWITCH_REPORT_H
#define _SWITCH_REPORT_H

#include <stdbool.h>

extern unsigned int c_failures;

__attribute__((format(printf, 3, 4)))
void c_fail(const char *file, int line, const char *fmt, ...);
__attribute__((noreturn))
void c_give_up(void);

#define C_EQ(a, b) do {							\
	long long __a = (long long)(a);					\
	long long __b = (long long)(b);					\
									\
	if (__a != __b)							\
		c_fail(__FILE__, __LINE__, "%s is %lld, not %s, %lld",	\
		       #a, __a, #b, __b);				\
} while (0)

#define C_TRUE(cond) do {						\
	if (!(cond))							\
		c_fail(__FILE__, __LINE__, "%s is false", #cond);	\
} while (0)

#endif /* _SWITCH_REPORT_H */
