# SPDX-License-Identifier: GPL-2.0
"""Memory that the kernel's fault injection cannot refuse, or not without a dump of
the stack: a copy of the module calls refusing/atp_refusing.c for it instead of the
kernel."""

import os
import platform
import subprocess

import kmod
from atptest import TOP

# What is called instead; the rest of the copy is the same, byte for byte.
INSTEAD = {
    "__alloc_percpu_gfp": "refusing__alloc_percpu_gfp",
    "dst_cache_init": "refusing_dst_cache_init",
    "__percpu_counter_init": "refusing__percpu_counter_init",
    "proto_register": "refusing_proto_register",
    "register_net_sysctl": "refusing_register_net_sysctl",
}
PARAMETERS = "/sys/module/atp_refusing/parameters"


def call_instead(module):
    """From now on kmod.py loads the copy of @module."""
    bed = platform.release().rpartition("-")[2]
    subprocess.run(["insmod", os.path.join(
        TOP, f"build/selftests/memory/{bed}/atp_refusing.ko")], check=True)
    copy = "/tmp/atp.ko"
    names = [f"--redefine-sym={name}={instead}"
             for name, instead in INSTEAD.items()]
    subprocess.run(["objcopy", *names, module, copy], check=True)
    kmod.unload()
    kmod.load_from(copy)
    kmod.load()


def _write(name, value):
    with open(f"{PARAMETERS}/{name}", "w", encoding="ascii") as f:
        f.write(str(value))


def _read(name):
    with open(f"{PARAMETERS}/{name}", encoding="ascii") as f:
        return int(f.read())


class Refuse:
    """Calls that return to an address from @first to @last fail, @times of them
    after @passed that do not."""

    def __init__(self, first, last, times=1, passed=0):
        self.first, self.last = first, last
        self.times, self.passed = times, passed

    def __enter__(self):
        _write("first", self.first)
        _write("last", self.last)
        _write("passed", self.passed)
        _write("times", self.times)
        return self

    def __exit__(self, *what):
        self.left = _read("times")
        _write("times", 0)

    def hit(self):
        """Has one failed?  Asked when all is over."""
        return self.left != self.times
