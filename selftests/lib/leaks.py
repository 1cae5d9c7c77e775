# SPDX-License-Identifier: GPL-2.0
"""Does the kernel keep something of what was done many times?

    leaks = Leaks()
    for _ in range(1000):
        something()
    leaks.none(1000)

What is leaked once per cycle makes some slab cache grow by as many objects,
whatever its size and whether or not it is our own cache; memory per CPU, mapped
memory and what is too large for a cache are counted by themselves.  A margin of
a fifth of the cycles is for what caches keep at hand by design; what every fourth
cycle leaves is more.  What RCU or the page allocator frees late is waited for.
"""

import ctypes
import glob
import os
import time

MEMBARRIER, GLOBAL = 324, 1     # x86-64

LIMIT = 240
# KiB that the allocator of per-CPU memory may keep at hand
PERCPU_SPARE = 128
# KiB that caches may keep at hand
SLAB_SPARE = 4096
# A kernel that tracks references keeps the last ones that were given back: as
# many in each of the two lists of a namespace.
TRACKED = {"kmalloc-32": 2 * 128}
# what the processes of a test and their files fill and empty
NOT_OURS = ("dentry", "fuse_inode", "ovl_inode", "lsm_inode_cache", "filp",
            "radix_tree_node", "buffer_head", "proc_inode_cache", "lsm_file_cache",
            "vm_area_struct", "vma_lock", "maple_node", "anon_vma",
            "anon_vma_chain", "vmap_area",
            # one for each object of all the others
            "kmemleak_object")


def slab_objects():
    """Objects in use per cache."""
    with open("/proc/slabinfo", encoding="ascii") as f:
        lines = [line.split() for line in f.readlines()[2:]]
    return {w[0]: int(w[1]) for w in lines if w[0] not in NOT_OURS}


def meminfo(name):
    """KiB"""
    with open("/proc/meminfo", encoding="ascii") as f:
        for line in f:
            if line.startswith(name + ":"):
                return int(line.split()[1])
    raise KeyError(name)


def tracks_references():
    with open("/proc/kallsyms", encoding="ascii") as f:
        return any(line.endswith(" ref_tracker_alloc\n") for line in f)


def give_back():
    """What is only kept at hand; what a CPU holds in reserve counts as used."""
    with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as f:
        f.write("3")
    for name in glob.glob("/sys/kernel/slab/*/shrink"):
        with open(name, "w", encoding="ascii") as f:
            f.write("1")


def wait_for_rcu():
    """A CPU calls in order what is to be called after a grace period, so what
    waited there before is done.  Twice: what is freed may have something freed."""
    libc = ctypes.CDLL(None, use_errno=True)
    allowed = os.sched_getaffinity(0)
    for cpu in 2 * list(allowed):
        os.sched_setaffinity(0, {cpu})
        if libc.syscall(MEMBARRIER, GLOBAL, 0, 0):
            raise OSError(ctypes.get_errno(), "membarrier")
    os.sched_setaffinity(0, allowed)


class Leaks:
    """What is in use now.  Do a few cycles before, for what is kept once.

    What was given up before must be gone, or its going hides what is kept.
    """

    def __init__(self):
        self.spare = TRACKED if tracks_references() else {}
        wait_for_rcu()
        give_back()
        self.slab = slab_objects()
        self.percpu = meminfo("Percpu")
        self.mapped = meminfo("VmallocUsed")
        self.unreclaimable = meminfo("SUnreclaim")

    def grown(self, cycles):
        """What looks like a leak just now."""
        found = {name: n - self.slab.get(name, 0)
                 for name, n in slab_objects().items()
                 if n - self.slab.get(name, 0) >
                 cycles // 5 + self.spare.get(name, 0)}
        percpu = meminfo("Percpu") - self.percpu
        if percpu > PERCPU_SPARE:
            found["Percpu KiB"] = percpu
        mapped = meminfo("VmallocUsed") - self.mapped
        # a mapping is a page at least
        if mapped > cycles:
            found["VmallocUsed KiB"] = mapped
        # what has no cache has more than two pages
        large = meminfo("SUnreclaim") - self.unreclaimable
        if large > SLAB_SPARE + 8 * cycles:
            found["SUnreclaim KiB"] = large
        return found

    def none(self, cycles):
        """Fails if something grew with each cycle and stays so."""
        end = time.monotonic() + LIMIT
        while True:
            found = self.grown(cycles)
            if not found:
                return
            if time.monotonic() > end:
                raise AssertionError(f"grown in {cycles} cycles: {found}")
            give_back()
            time.sleep(0.1)
