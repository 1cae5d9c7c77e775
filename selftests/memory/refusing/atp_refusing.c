// SPDX-License-Identifier: GPL-2.0
/*
 * Calls that fail to order, for want of memory that the kernel's own fault
 * injection does not know: memory per CPU; or where the kernel dumps its stack
 * when it fails: caches and sysctls. refusing.py makes a copy of atp.ko that
 * calls these instead of what they are named after.
 *
 * Calls that return to an address from @first to @last fail, @times of them,
 * after @passed that do not; all are parameters, written while nobody calls.
 */
#include <linux/atomic.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/percpu_counter.h>
#include <net/dst_cache.h>
#include <net/net_namespace.h>
#include <net/sock.h>

static unsigned long first;
module_param(first, ulong, 0600);
MODULE_PARM_DESC(first, "lowest return address of calls that fail");

static unsigned long last;
module_param(last, ulong, 0600);
MODULE_PARM_DESC(last, "highest return address of calls that fail");

/* Signed and counted down by several CPUs at a time */
static atomic_t passed;
module_param_named(passed, passed.counter, int, 0600);
MODULE_PARM_DESC(passed, "calls that do not fail before the first that does");

static atomic_t times;
module_param_named(times, times.counter, int, 0600);
MODULE_PARM_DESC(times, "calls that fail");

/* What the linker makes of the names in the copy; no header knows them. */
void __percpu *refusing__alloc_percpu_gfp(size_t size, size_t align, gfp_t gfp);
int refusing_dst_cache_init(struct dst_cache *cache, gfp_t gfp);
int refusing__percpu_counter_init(struct percpu_counter *counter, s64 amount,
				  gfp_t gfp, struct lock_class_key *key);
int refusing_proto_register(struct proto *prot, int alloc_slab);
struct ctl_table_header *refusing_register_net_sysctl(struct net *net,
						      const char *path,
						      struct ctl_table *table);

static bool refuse(unsigned long back)
{
	if (back < first || back > last)
		return false;
	if (atomic_dec_if_positive(&passed) >= 0)
		return false;
	return atomic_dec_if_positive(&times) >= 0;
}

void __percpu *refusing__alloc_percpu_gfp(size_t size, size_t align, gfp_t gfp)
{
	return refuse(_RET_IP_) ? NULL : __alloc_percpu_gfp(size, align, gfp);
}
EXPORT_SYMBOL_GPL(refusing__alloc_percpu_gfp);

int refusing_dst_cache_init(struct dst_cache *cache, gfp_t gfp)
{
	return refuse(_RET_IP_) ? -ENOMEM : dst_cache_init(cache, gfp);
}
EXPORT_SYMBOL_GPL(refusing_dst_cache_init);

int refusing__percpu_counter_init(struct percpu_counter *counter, s64 amount,
				  gfp_t gfp, struct lock_class_key *key)
{
	return refuse(_RET_IP_) ? -ENOMEM :
		__percpu_counter_init(counter, amount, gfp, key);
}
EXPORT_SYMBOL_GPL(refusing__percpu_counter_init);

int refusing_proto_register(struct proto *prot, int alloc_slab)
{
	return refuse(_RET_IP_) ? -ENOMEM : proto_register(prot, alloc_slab);
}
EXPORT_SYMBOL_GPL(refusing_proto_register);

struct ctl_table_header *refusing_register_net_sysctl(struct net *net,
						      const char *path,
						      struct ctl_table *table)
{
	return refuse(_RET_IP_) ? NULL : register_net_sysctl(net, path, table);
}
EXPORT_SYMBOL_GPL(refusing_register_net_sysctl);

MODULE_DESCRIPTION("Refuses memory per CPU, caches and sysctls to atp.ko");
MODULE_LICENSE("GPL");
