# SPDX-License-Identifier: GPL-2.0
"""Does the kernel keep something of what was done many times?

    leaks = Leaks()
    for _ in range(1000):
        something()
    leaks.none(1000)

What is leaked once per cycle makes some slab cache grow by as many objects,
whatever its size and whether or not it is our own cache; memory per CPU, mapped
memory and what is too large for a cache are counted by themselves.  A margin of
a tenth of the cycles is for what else goes on in the machine; what every ninth
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


class Slabs:
    """Counts the objects of each cache that are in use.

    All of what a CPU holds in reserve counts as used, and that may be hundreds of
    small ones.  So the caches are told to take it back just before.  As that
    takes memory itself, all files are open before, and the cache that writing to
    them takes from comes last.
    """

    def __init__(self):
        paths = glob.glob("/sys/kernel/slab/*/shrink")
        # not once for each of its names
        paths = {os.path.realpath(p) for p in paths}
        last = os.path.realpath("/sys/kernel/slab/kmalloc-8/shrink")
        self.shrink = [os.open(p, os.O_WRONLY) for p in paths - {last}]
        self.shrink.append(os.open(last, os.O_WRONLY))
        self.info = os.open("/proc/slabinfo", os.O_RDONLY)

    def __del__(self):
        for fd in self.shrink + [self.info]:
            os.close(fd)

    def count(self):
        for fd in self.shrink:
            os.pwrite(fd, b"1", 0)
        text = b""
        while more := os.pread(self.info, 1 << 16, len(text)):
            text += more
        lines = [line.split() for line in text.decode().splitlines()[2:]]
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
    """What the kernel only keeps at hand"""
    with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as f:
        f.write("3")


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
        self.slabs = Slabs()
        self.slab = self.slabs.count()
        self.percpu = meminfo("Percpu")
        self.mapped = meminfo("VmallocUsed")
        self.unreclaimable = meminfo("SUnreclaim")

    def grown(self, cycles):
        """What looks like a leak just now."""
        found = {name: n - self.slab.get(name, 0)
                 for name, n in self.slabs.count().items()
                 if n - self.slab.get(name, 0) >
                 cycles // 10 + self.spare.get(name, 0)}
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
