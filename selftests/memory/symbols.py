# SPDX-License-Identifier: GPL-2.0
"""Functions of the kernel: names and addresses"""

# What 6.12 calls those of 6.1.  Of others only "_noprof" may be added.
RENAMED = {
    "kmalloc_trace": "__kmalloc_cache_noprof",
    "kmalloc_node_trace": "__kmalloc_cache_node_noprof",
    "kmalloc_large": "__kmalloc_large_noprof",
    "kmalloc_large_node": "__kmalloc_large_node_noprof",
    "kvmalloc_node": "__kvmalloc_node_noprof",
    "__alloc_percpu": "pcpu_alloc_noprof",
    "__alloc_percpu_gfp": "pcpu_alloc_noprof",
    "__percpu_counter_init": "__percpu_counter_init_many",
    "register_net_sysctl": "register_net_sysctl_sz",
    "netlink_broadcast": "netlink_broadcast_filtered",
}
ORIGINAL = {new: old for old, new in RENAMED.items()}


def original(name):
    """Of a function of any kernel: its name in 6.1"""
    return ORIGINAL.get(name, name.removesuffix("_noprof"))


def _all():
    with open("/proc/kallsyms", encoding="ascii") as f:
        return sorted((int(line.split()[0], 16), line.split()[2]) for line in f)


def here(name):
    """Of a function of 6.1: its name in this kernel"""
    there = {symbol for _, symbol in _all()}
    for symbol in (name, RENAMED.get(name), name + "_noprof"):
        if symbol in there:
            return symbol
    raise AssertionError(f"no {name} in this kernel")


def text_of(function):
    """(first, last) address of a function of the kernel, or of the part of it that
    the compiler has set apart from its beginning"""
    symbols = _all()
    there = {name: at for at, name in symbols}
    first = there.get(function + ".part.0") or there[function]
    return first, next(at for at, _ in symbols if at > first) - 1


def text_of_module():
    """Where it begins"""
    with open("/sys/module/atp/sections/.text", encoding="ascii") as f:
        return int(f.read(), 0)
