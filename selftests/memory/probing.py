# SPDX-License-Identifier: GPL-2.0
"""Allocations that fail to order on a kernel that was built without fault injection:
probing/atp_probing.c stops them where they begin.  What is copied from and to user
space does not fail here."""

import errno
import os
import platform
import subprocess
import threading

from atptest import TOP
from symbols import here, text_of

# What allocates, by the names of each kernel
MEMORY = """
    kmem_cache_alloc kmem_cache_alloc_lru kmem_cache_alloc_node kmem_cache_alloc_bulk
    __kmalloc __kmalloc_node __kmalloc_node_track_caller kmalloc_trace
    kmalloc_node_trace kmalloc_large kmalloc_large_node __alloc_pages
    __alloc_percpu __alloc_percpu_gfp
""".split()
# When a cache or a sysctl has no memory, the kernel dumps its stack; so the
# module is told so instead.
CALLS = ["proto_register"]
POINTERS = ["register_net_sysctl"]
AT_LOADING = len(CALLS + POINTERS)
# ftrace does not see it, but what it calls
BELOW_AT_LOADING = ["__percpu_counter_init"]

# These jump on to another, which is in the stack instead.
JUMPS = {"__vmalloc": "__vmalloc_node_range"}

# Counted together
ATTRS = ("memory",)
COPIES_FAIL = False
PARAMETERS = "/sys/module/atp_probing/parameters"
ALL = (0, 2**64 - 1)


def prepare(_):
    """Nothing fails yet.  The module is the one under test, as it is."""
    module = os.path.join(TOP, "build/selftests/memory", kernel(),
                          "atp_probing.ko")
    lists = {"memory": MEMORY, "calls": CALLS, "pointers": POINTERS}
    subprocess.run(["insmod", module,
                    *(f"{name}=" + ",".join(sorted({here(f) for f in functions}))
                      for name, functions in lists.items())], check=True)


def kernel():
    """The name of its folder"""
    return ".".join(platform.release().split(".")[:2])


def _write(name, value):
    with open(f"{PARAMETERS}/{name}", "w", encoding="ascii") as f:
        f.write(str(value))


def _read(name):
    with open(f"{PARAMETERS}/{name}", encoding="ascii") as f:
        return int(f.read())


class Below:
    """Allocations whose stack has an address from @first to @last, and one of
    @also, fail: @times of them, after @passed that do not; with @pid those of this
    task alone, with @whole it is calls that fail."""

    def __init__(self, first, last, times=1, attrs=ATTRS, passed=0, also=ALL,
                 pid=0, whole=False):
        assert tuple(attrs) == ATTRS
        self.times = times
        self.order = {"first": first, "last": last, "below_first": also[0],
                      "below_last": also[1], "pid": pid, "passed": passed,
                      "whole": int(whole)}

    def __enter__(self):
        for name, value in self.order.items():
            _write(name, value)
        _write("times", self.times)
        return self

    def __exit__(self, *what):
        self.left = _read("times")
        _write("times", 0)

    def hit(self):
        """Has one failed?  Asked when all is over."""
        return self.left != self.times


def at(site, first, last, times=1, passed=0):
    """What fails at that call"""
    also = ALL
    if site.is_tail:
        behind = JUMPS.get(site.callee)
        also = text_of(here(behind) if behind else site.symbol)
    return Below(first, last, times, passed=passed, also=also)


def calls(passed):
    """One of CALLS and POINTERS by this task, after @passed that do not fail"""
    return Below(*ALL, passed=passed, pid=os.getpid(), whole=True)


class Nth:
    """The nth allocation of this task fails, and none else."""
    def __init__(self):
        # to open them would need memory, too
        self.pid, self.times = (os.open(f"{PARAMETERS}/{name}", os.O_RDWR)
                                for name in ("pid", "times"))

    def arm(self, n):
        for name, value in Below(*ALL, passed=n - 1,
                                 pid=threading.get_native_id()).order.items():
            _write(name, value)
        os.pwrite(self.times, b"1", 0)

    def hit(self):
        """Has it failed?  No more does from now on."""
        try:
            os.pwrite(self.pid, b"-1", 0)
        except OSError as e:
            # to say so was the nth
            assert e.errno == errno.ENOMEM
            return False
        hit = not int(os.pread(self.times, 32, 0))
        os.pwrite(self.times, b"0", 0)
        return hit
