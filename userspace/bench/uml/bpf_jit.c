// SPDX-License-Identifier: GPL-2.0
/*
 * x86-64's compiler for BPF in User-mode Linux, so that the switch's program
 * takes there what it takes elsewhere.
 *
 * Built into the benchmark's kernel alone (selftests/debug/build-kernel.sh,
 * which makes bpf_jit_comp.h of arch/x86/net/bpf_jit_comp.c).  What that file
 * asks of x86 and User-mode Linux has not is here: a place for code, writing to
 * it, and the answer that no workaround for a CPU's flaw is needed, as the
 * machine's kernel does what there is to do for its processes.
 *
 * A load that may fault (BPF_PROBE_MEM, of programs that trace) is not caught.
 */
#include <linux/bitmap.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/if_vlan.h>
#include <linux/init.h>
#include <linux/memory.h>
#include <linux/netdevice.h>
#include <linux/set_memory.h>
#include <linux/sort.h>
#include <os.h>

/*
 * Calls reach 2 GiB, so code is kept where the kernel is, among its own data.
 * What it maps is behind all of the memory.
 */
#define CODE_PAGES	4096

static u8 code[CODE_PAGES * PAGE_SIZE] __aligned(PAGE_SIZE);
static DECLARE_BITMAP(taken, CODE_PAGES);
/* of what begins at a page */
static unsigned int length[CODE_PAGES];
static DEFINE_SPINLOCK(code_lock);

void *bpf_jit_alloc_exec(unsigned long size)
{
	unsigned int pages = PAGE_ALIGN(size) / PAGE_SIZE;
	unsigned long at;

	spin_lock(&code_lock);
	at = bitmap_find_next_zero_area(taken, CODE_PAGES, 0, pages, 0);
	if (at < CODE_PAGES) {
		bitmap_set(taken, at, pages);
		length[at] = pages;
	}
	spin_unlock(&code_lock);
	return at < CODE_PAGES ? code + at * PAGE_SIZE : NULL;
}

void bpf_jit_free_exec(void *addr)
{
	unsigned long at = ((u8 *)addr - code) / PAGE_SIZE;

	if (!addr)
		return;
	spin_lock(&code_lock);
	bitmap_clear(taken, at, length[at]);
	spin_unlock(&code_lock);
}

static int __init code_init(void)
{
	return os_protect_memory(code, sizeof(code), 1, 1, 1);
}
early_initcall(code_init);

static void *text_poke_copy(void *dst, const void *src, size_t len)
{
	return memcpy(dst, src, len);
}

static void *text_poke_set(void *dst, int c, size_t len)
{
	return memset(dst, c, len);
}

static void text_poke_bp(void *dst, const void *src, size_t len, void *unused)
{
	memcpy(dst, src, len);
}

#define ASM_NOP_MAX 8
static const u8 * const x86_nops[] = {
	NULL,
	(const u8[]){ 0x90 },
	(const u8[]){ 0x66, 0x90 },
	(const u8[]){ 0x0f, 0x1f, 0x00 },
	(const u8[]){ 0x0f, 0x1f, 0x40, 0x00 },
	(const u8[]){ 0x0f, 0x1f, 0x44, 0x00, 0x00 },
	(const u8[]){ 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00 },
	(const u8[]){ 0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00 },
	(const u8[]){ 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00 },
};

/* Never called: see cpu_feature_enabled() */
static u8 __x86_indirect_thunk_array[16];
static u8 clear_bhb_loop[1];
static u8 x86_return_thunk[1];
#define its_static_thunk(reg)		NULL

#undef cpu_feature_enabled
#define cpu_feature_enabled(bit)	false
#define cpu_wants_rethunk()		false
/* SSE2 alone is asked for */
#undef boot_cpu_has
#define boot_cpu_has(bit)		true

#ifndef TASK_SIZE_MAX
#define TASK_SIZE_MAX	TASK_SIZE
#endif
/* x86's names, for a table that nothing here reads */
#define pt_regs x86_regs
struct x86_regs {
	unsigned long ax, bx, cx, dx, si, di, r8, r13, r14, r15;
};

#include "bpf_jit_comp.h"
