// SPDX-License-Identifier: GPL-2.0
/*
 * Allocations that fail to order, on a kernel that was built without fault
 * injection: kprobes at the functions that allocate, which return at once.
 *
 * One of @memory has none; with @whole it is one of @calls that fails, with
 * -ENOMEM, or one of @pointers, with NULL. This happens @times times, after
 * @passed that do not, to those whose stack has an address from @first to @last
 * and one from @below_first to @below_last, and to those of task @pid alone if
 * that is not 0. All but the names are written while nothing is to fail.
 */
#include <linux/atomic.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/stacktrace.h>

#define MAX_PROBES	32
#define MAX_DEPTH	64

static char *memory[MAX_PROBES];
static int memory_n;
module_param_array(memory, charp, &memory_n, 0400);
MODULE_PARM_DESC(memory, "functions that return memory");

static char *calls[MAX_PROBES];
static int calls_n;
module_param_array(calls, charp, &calls_n, 0400);
MODULE_PARM_DESC(calls, "functions that return an errno");

static char *pointers[MAX_PROBES];
static int pointers_n;
module_param_array(pointers, charp, &pointers_n, 0400);
MODULE_PARM_DESC(pointers, "functions that return a pointer or NULL");

static bool whole;
module_param(whole, bool, 0600);
MODULE_PARM_DESC(whole, "calls and pointers fail, and not memory");

static unsigned long first;
module_param(first, ulong, 0600);
MODULE_PARM_DESC(first, "lowest address in the stack of what fails");

static unsigned long last;
module_param(last, ulong, 0600);
MODULE_PARM_DESC(last, "highest address in the stack of what fails");

static unsigned long below_first;
module_param(below_first, ulong, 0600);
MODULE_PARM_DESC(below_first, "lowest of another address there");

static unsigned long below_last;
module_param(below_last, ulong, 0600);
MODULE_PARM_DESC(below_last, "highest of another address there");

static int pid;
module_param(pid, int, 0600);
MODULE_PARM_DESC(pid, "what fails is of this task alone");

/* Signed and counted down by several CPUs at a time */
static atomic_t passed;
module_param_named(passed, passed.counter, int, 0600);
MODULE_PARM_DESC(passed, "allocations that do not fail before the first");

static atomic_t times;
module_param_named(times, times.counter, int, 0600);
MODULE_PARM_DESC(times, "allocations that fail");

/* What runs instead of the function, with its stack. */
static noinline notrace long returns_null(void)
{
	return 0;
}

static noinline notrace long returns_errno(void)
{
	return -ENOMEM;
}

static struct probe {
	struct kprobe kp;
	bool whole;
	long (*instead)(void);
} probes[3 * MAX_PROBES];
static int probes_n;

static bool in_stack(void)
{
	unsigned long entries[MAX_DEPTH];
	bool is_there = false, below = false;
	unsigned int i, n;

	n = stack_trace_save(entries, ARRAY_SIZE(entries), 0);
	for (i = 0; i < n; i++) {
		is_there |= entries[i] >= first && entries[i] <= last;
		below |= entries[i] >= below_first && entries[i] <= below_last;
	}
	return is_there && below;
}

static bool fails(const struct probe *probe)
{
	if (atomic_read(&times) <= 0 || probe->whole != whole)
		return false;
	/* not in_task(): a probe that is a breakpoint counts as an NMI */
	if (pid && (in_serving_softirq() || task_pid_nr(current) != pid))
		return false;
	if (!in_stack())
		return false;
	if (atomic_dec_if_positive(&passed) >= 0)
		return false;
	return atomic_dec_if_positive(&times) >= 0;
}

static int on_entry(struct kprobe *kp, struct pt_regs *regs)
{
	struct probe *probe = container_of(kp, struct probe, kp);

	if (!fails(probe))
		return 0;
	regs->ip = (unsigned long)probe->instead;
	return 1;
}

NOKPROBE_SYMBOL(on_entry);

/* Where there is one, on_entry() may change where the CPU goes on. */
static void after(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
{
}

NOKPROBE_SYMBOL(after);

static void remove_probes(void)
{
	while (probes_n)
		unregister_kprobe(&probes[--probes_n].kp);
}

static int add_probes(char **names, int n, bool whole, long (*instead)(void))
{
	struct probe *probe;
	int i, err;

	for (i = 0; i < n; i++) {
		probe = &probes[probes_n];
		probe->whole = whole;
		probe->instead = instead;
		probe->kp.symbol_name = names[i];
		probe->kp.pre_handler = on_entry;
		probe->kp.post_handler = after;
		err = register_kprobe(&probe->kp);
		if (err) {
			pr_err("no probe at %s: %d\n", names[i], err);
			return err;
		}
		probes_n++;
	}
	return 0;
}

static int __init probing_init(void)
{
	int err = add_probes(memory, memory_n, false, returns_null) ?:
		  add_probes(calls, calls_n, true, returns_errno) ?:
		  add_probes(pointers, pointers_n, true, returns_null);

	if (err)
		remove_probes();
	return err;
}

static void __exit probing_exit(void)
{
	remove_probes();
}

module_init(probing_init);
module_exit(probing_exit);
MODULE_DESCRIPTION("Lets allocations fail, by kprobes");
MODULE_LICENSE("GPL");
