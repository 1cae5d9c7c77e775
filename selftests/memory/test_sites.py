#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""What test_failing.py lets fail, on a kernel that was built for it, is all that may
fail in the modules for Debian's kernels, where some of it has another name."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../lib"))
from atptest import TOP, main, same, test  # noqa: E402
from sites import ALLOCATING, OTHERS, called  # noqa: E402

# 6.12's names for those of 6.1
NAMES = {
    "__kmalloc_cache_noprof": "kmalloc_trace",
    "__kvmalloc_node_noprof": "kvmalloc_node",
    "__vmalloc_noprof": "__vmalloc",
    "pcpu_alloc_noprof": "__alloc_percpu_gfp",
    "__percpu_counter_init_many": "__percpu_counter_init",
    "register_net_sysctl_sz": "register_net_sysctl",
    "netlink_broadcast_filtered": "netlink_broadcast",
}
# None of these allocates: of the compiler and of checks that Debian has
NEVER = {
    "__fentry__", "__stack_chk_fail", "__x86_return_thunk",
    "__x86_indirect_thunk_rax", "__check_object_size", "PageHuge",
    "__SCT__preempt_schedule_notrace", "ip6_mtu", "ipv4_mtu",
    "percpu_counter_destroy_many", "rcuref_get_slowpath", "sk_skb_reason_drop",
    "skb_queue_purge_reason",
}
# behind a pointer, as IPv6 may be a module
NOT_BY_NAME = {"ipv6_dst_lookup_flow"}


def agrees(kernel):
    names = called(os.path.join(TOP, f"build/kmod/{kernel}/atp.ko"))
    now = {NAMES.get(name, name) for name in names - NEVER} | NOT_BY_NAME
    same(sorted(set(ALLOCATING) - now), [], "called no more")
    same(sorted(name for name in now - set(ALLOCATING)
                if not OTHERS.fullmatch(name)), [], "allocating or not?")


@test
def on_6_1():
    agrees("6.1")


@test
def on_6_12():
    agrees("6.12")


main()
