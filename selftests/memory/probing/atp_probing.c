// SPDX-License-Identifier: GPL-2.0
/*
 * Allocations that fail to order, on a kernel that was built without fault
 * injection: ftrace at the functions that allocate, which return at once. Not
 * kprobes: what interrupts one and meets another passes that unseen.
 *
 * One of @memory has none; with @whole it is one of @calls that fails, with
 * -ENOMEM, or one of @pointers, with NULL. This happens @times times, after
 * @passed that do not, to those whose stack has an address from @first to @last
 * and one from @below_first to @below_last, and to those of task @pid alone if
 * that is not 0. All but the names are written while nothing is to fail.
 */
#include <linux/atomic.h>
#include <linux/errno.h>
#include <linux/ftrace.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/stacktrace.h>
#include <linux/string.h>

#define MAX_NAMES	32
#define MAX_DEPTH	64

static char *memory[MAX_NAMES];
static int memory_n;
module_param_array(memory, charp, &memory_n, 0400);
MODULE_PARM_DESC(memory, "functions that return memory");

static char *calls[MAX_NAMES];
static int calls_n;
module_param_array(calls, charp, &calls_n, 0400);
MODULE_PARM_DESC(calls, "functions that return an errno");

static char *pointers[MAX_NAMES];
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

/* Functions that fail alike */
struct probes {
	struct ftrace_ops ops;
	bool whole;
	long (*instead)(void);
};

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

static bool fails(const struct probes *probes)
{
	if (atomic_read(&times) <= 0 || probes->whole != whole)
		return false;
	if (pid && (!in_task() || task_pid_nr(current) != pid))
		return false;
	if (!in_stack())
		return false;
	if (atomic_dec_if_positive(&passed) >= 0)
		return false;
	return atomic_dec_if_positive(&times) >= 0;
}

/* In any context */
static void notrace on_entry(unsigned long ip, unsigned long parent,
			     struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct probes *probes = container_of(ops, struct probes, ops);

	if (fails(probes))
		ftrace_get_regs(fregs)->ip = (unsigned long)probes->instead;
}

#define PROBES(_whole, _instead) {				\
	.ops = {						\
		.func = on_entry,				\
		.flags = FTRACE_OPS_FL_SAVE_REGS |		\
			 FTRACE_OPS_FL_IPMODIFY,		\
	},							\
	.whole = _whole,					\
	.instead = _instead,					\
}

static struct probes of_memory = PROBES(false, returns_null);
static struct probes of_calls = PROBES(true, returns_errno);
static struct probes of_pointers = PROBES(true, returns_null);

static int add(struct probes *probes, char **names, int n)
{
	/* without names it would be all functions */
	int i, err = n ? 0 : -EINVAL;

	for (i = 0; i < n && !err; i++) {
		err = ftrace_set_filter(&probes->ops, names[i],
					strlen(names[i]), !i);
		if (err)
			pr_err("no probe at %s: %d\n", names[i], err);
	}
	if (!err)
		err = register_ftrace_function(&probes->ops);
	if (err)
		ftrace_free_filter(&probes->ops);
	return err;
}

static void remove(struct probes *probes)
{
	unregister_ftrace_function(&probes->ops);
	ftrace_free_filter(&probes->ops);
}

static int __init probing_init(void)
{
	int err;

	err = add(&of_memory, memory, memory_n);
	if (err)
		return err;
	err = add(&of_calls, calls, calls_n);
	if (err)
		goto no_calls;
	err = add(&of_pointers, pointers, pointers_n);
	if (err)
		goto no_pointers;
	return 0;

no_pointers:
	remove(&of_calls);
no_calls:
	remove(&of_memory);
	return err;
}

static void __exit probing_exit(void)
{
	remove(&of_pointers);
	remove(&of_calls);
	remove(&of_memory);
}

module_init(probing_init);
module_exit(probing_exit);
MODULE_DESCRIPTION("Lets allocations fail, by ftrace");
MODULE_LICENSE("GPL");
