// SPDX-License-Identifier: GPL-2.0
/*
 * Bugs to order, one of each kind that a debug kernel is there to catch:
 *
 *	echo NAME >/sys/module/atp_planted/parameters/plant
 *
 * A kernel that says nothing about one of them proves nothing about atp.ko.
 */
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/timer.h>
#include <linux/vmalloc.h>

static DEFINE_SPINLOCK(planted_a);
static DEFINE_SPINLOCK(planted_b);

/* The compiler must neither see through what is wrong nor leave it out. */
static noinline int planted_hide(int value)
{
	OPTIMIZER_HIDE_VAR(value);
	return value;
}

/* Harmless here on one CPU, a deadlock on two that run half of it each */
static noinline void planted_lock_order(void)
{
	spin_lock(&planted_a);
	spin_lock(&planted_b);
	spin_unlock(&planted_b);
	spin_unlock(&planted_a);

	spin_lock(&planted_b);
	spin_lock(&planted_a);
	spin_unlock(&planted_a);
	spin_unlock(&planted_b);
}

static int __rcu *planted_pointer;

static noinline void planted_rcu(void)
{
	planted_hide(!rcu_dereference(planted_pointer));
}

static noinline void planted_sleep(void)
{
	spin_lock(&planted_a);
	kfree(kmalloc(100, GFP_KERNEL));
	spin_unlock(&planted_a);
}

static noinline void planted_out_of_bounds(void)
{
	char *p = kzalloc(100, GFP_KERNEL);

	if (p)
		WRITE_ONCE(p[planted_hide(100)], 1);
	kfree(p);
}

/* In the last page, which is mapped: only the checker knows. */
static noinline void planted_vmalloc(void)
{
	char *p = vzalloc(100);

	if (p)
		WRITE_ONCE(p[planted_hide(100)], 1);
	vfree(p);
}

static noinline void planted_use_after_free(void)
{
	char *p = kzalloc(100, GFP_KERNEL);
	char *stale = p;

	OPTIMIZER_HIDE_VAR(stale);
	kfree(p);
	if (stale)
		planted_hide(READ_ONCE(stale[50]));
}

static noinline void planted_leak(void)
{
	int i;

	/* More than one, since a stale word on some stack may keep one alive */
	for (i = 0; i < 8; i++) {
		void *p = kmalloc(100, GFP_KERNEL);

		OPTIMIZER_HIDE_VAR(p);
	}
}

static void planted_expired(struct timer_list *timer)
{
}

static noinline void planted_free_active(void)
{
	struct timer_list *timer = kmalloc(sizeof(*timer), GFP_KERNEL);

	if (!timer)
		return;
	timer_setup(timer, planted_expired, 0);
	mod_timer(timer, jiffies + 3600 * HZ);
	/* The checker cancels it before it is memory again. */
	kfree(timer);
}

static noinline void planted_shift(void)
{
	planted_hide(1 << planted_hide(40));
}

static long planted_shared;

static int planted_racer(void *unused)
{
	while (!kthread_should_stop()) {
		planted_shared++;
		cond_resched();
	}
	return 0;
}

static struct task_struct *planted_racers[2];

static void planted_race_end(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(planted_racers); i++) {
		if (!IS_ERR_OR_NULL(planted_racers[i]))
			kthread_stop(planted_racers[i]);
		planted_racers[i] = NULL;
	}
}

/* Goes on until the module goes: the checker takes samples. */
static noinline void planted_race(void)
{
	int i;

	planted_race_end();
	for (i = 0; i < ARRAY_SIZE(planted_racers); i++)
		planted_racers[i] = kthread_run(planted_racer, NULL,
						"planted/%d", i);
}

static const struct {
	const char *name;
	void (*plant)(void);
} planted_bugs[] = {
	{ "lock-order", planted_lock_order },
	{ "rcu", planted_rcu },
	{ "sleep", planted_sleep },
	{ "out-of-bounds", planted_out_of_bounds },
	{ "vmalloc", planted_vmalloc },
	{ "use-after-free", planted_use_after_free },
	{ "leak", planted_leak },
	{ "free-active", planted_free_active },
	{ "shift", planted_shift },
	{ "race", planted_race },
};

static int planted_set(const char *value, const struct kernel_param *kp)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(planted_bugs); i++) {
		if (!sysfs_streq(value, planted_bugs[i].name))
			continue;
		planted_bugs[i].plant();
		return 0;
	}
	return -EINVAL;
}

static const struct kernel_param_ops planted_ops = {
	.set = planted_set,
};

module_param_cb(plant, &planted_ops, NULL, 0200);
MODULE_PARM_DESC(plant, "name of a bug to commit now");

static int __init planted_init(void)
{
	return 0;
}

static void __exit planted_exit(void)
{
	planted_race_end();
}

module_init(planted_init);
module_exit(planted_exit);
MODULE_DESCRIPTION("Bugs that a debug kernel must catch");
MODULE_LICENSE("GPL");
