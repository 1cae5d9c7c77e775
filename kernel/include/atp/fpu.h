/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Floating point for the engine.  Put beside <atp/env.h>, and like it replaced
 * in a user-space build.
 */
#ifndef _ATP_FPU_H
#define _ATP_FPU_H

#include <linux/types.h>

#ifdef CONFIG_X86_64
#include <asm/fpu/api.h>

/* Context: not hard interrupts; preemption is off until atp_fpu_end(). */
static inline bool atp_fpu_begin(void)
{
	/* an interrupt may have come in the middle of somebody else's use */
	if (!irq_fpu_usable())
		return false;
	kernel_fpu_begin();
	return true;
}

static inline void atp_fpu_end(void)
{
	kernel_fpu_end();
}
#else
/* which options the compiler needs has been tried there only */
static inline bool atp_fpu_begin(void)
{
	return false;
}

static inline void atp_fpu_end(void)
{
}
#endif

#endif /* _ATP_FPU_H */
