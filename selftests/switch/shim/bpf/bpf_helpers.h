/* SPDX-License-Identifier: GPL-2.0 */
/* The helpers that the XDP programs call, for a build in user space. */
#ifndef _SHIM_BPF_HELPERS_H
#define _SHIM_BPF_HELPERS_H

#include <linux/types.h>

#define SEC(name)
#define SW_CONST		static
#define __noinline		__attribute__((noinline))
#define __uint(name, val)	int (*(name))[val]
#define __type(name, val)	__typeof__(val) *(name)
#define __array(name, val)	__typeof__(val) *(name)[]

void *shim_lookup(const void *map, const void *key);
long shim_redirect(const void *map, __u64 key, __u64 flags);
__u64 shim_now(void);

#define bpf_map_lookup_elem(map, key)		shim_lookup(map, key)
#define bpf_redirect_map(map, key, flags)	shim_redirect(map, key, flags)
#define bpf_ktime_get_ns()			shim_now()
#define bpf_jiffies64()				shim_now()

#endif /* _SHIM_BPF_HELPERS_H */
