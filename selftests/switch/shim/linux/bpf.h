/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel's header, but for the context of an XDP program: there its
 * pointers have 32 bits, which the kernel widens when it loads the program.
 */
#ifndef _SHIM_LINUX_BPF_H
#define _SHIM_LINUX_BPF_H

#define xdp_md xdp_md_of_the_kernel
#include_next <linux/bpf.h>
#undef xdp_md

struct xdp_md {
	unsigned long data;
	unsigned long data_end;
	unsigned int ingress_ifindex;
	unsigned int egress_ifindex;
};

#endif /* _SHIM_LINUX_BPF_H */
