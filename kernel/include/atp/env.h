/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the engine takes from its surroundings.  A user-space build puts another
 * <atp/env.h> in front of this one; the engine itself never asks where it is.
 */
#ifndef _ATP_ENV_H
#define _ATP_ENV_H

#include <asm/byteorder.h>
#include <asm/page.h>
#include <linux/bitops.h>
#include <linux/bug.h>
#include <linux/build_bug.h>
#include <linux/compiler.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/types.h>
#include <linux/unaligned.h>

#endif /* _ATP_ENV_H */
