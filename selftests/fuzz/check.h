/* SPDX-License-Identifier: GPL-2.0 */
/* What must hold: if it does not, the fuzzer keeps the input. */
#ifndef _FUZZ_CHECK_H
#define _FUZZ_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(cond) do {						\
	if (!(cond)) {							\
		/* stderr is not always what it seems (tool_env.h) */	\
		dprintf(2, "%s:%d: %s: %s is false\n", __FILE__,	\
			__LINE__, __func__, #cond);			\
		abort();						\
	}								\
} while (0)

#endif /* _FUZZ_CHECK_H */
