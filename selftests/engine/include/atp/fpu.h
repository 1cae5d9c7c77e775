/* SPDX-License-Identifier: GPL-2.0 */
/* User space may use floating point at any time. */
#ifndef _ATP_FPU_H
#define _ATP_FPU_H

#include <stdbool.h>

static inline bool atp_fpu_begin(void)
{
	return true;
}

static inline void atp_fpu_end(void)
{
}

#endif /* _ATP_FPU_H */
