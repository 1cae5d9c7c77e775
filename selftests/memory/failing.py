# SPDX-License-Identifier: GPL-2.0
"""Allocations that fail to order: the kernel's fault injection, and refusing.py for
what that leaves out."""
import errno
import os

from refusing import INSTEAD, Refuse, call_instead

DEBUG = "/sys/kernel/debug"
ATTRS = ("failslab", "fail_page_alloc")
# What is copied from and to user space fails, too.
COPIES_FAIL = True
# Calls of calls(): a cache, sysctls, two sorts of memory per CPU
AT_LOADING = 4
# Calls that are not among them, but what they allocate fails
BELOW_AT_LOADING = []


def available():
    """With failures by call site"""
    return os.path.exists(f"{DEBUG}/failslab/require-start")


def _write(attr, name, value):
    with open(f"{DEBUG}/{attr}/{name}", "w", encoding="ascii") as f:
        f.write(str(value))


def _read(attr, name):
    with open(f"{DEBUG}/{attr}/{name}", encoding="ascii") as f:
        return int(f.read(), 0)


def prepare(module):
    """All allocations may fail, whatever they ask for; silently.  From now on a
    copy of @module is loaded."""
    for attr in ATTRS:
        _write(attr, "probability", 0)
        _write(attr, "ignore-gfp-wait", "N")
        _write(attr, "stacktrace-depth", 32)
    # the last is only for Nth
    for attr in (*ATTRS, "fail_usercopy"):
        _write(attr, "verbose", 0)
    _write("fail_page_alloc", "min-order", 0)
    call_instead(module)


class Below:
    """Allocations whose stack has an address from @first to @last fail: each of the
    allocators @attrs @times times, after @passed that do not.

    The kernel counts and fails every interval-th, over all uses of this class;
    which is what @counted is for."""
    counted = dict.fromkeys(ATTRS, 0)

    def __init__(self, first, last, times=1, attrs=ATTRS, passed=0):
        self.first, self.last = first, last
        self.times, self.attrs, self.passed = times, attrs, passed

    def __enter__(self):
        for attr in self.attrs:
            interval = 1
            if self.passed:
                interval = self.counted[attr] + self.passed + 1
                self.counted[attr] = interval
            _write(attr, "interval", interval)
            _write(attr, "require-start", hex(self.first))
            _write(attr, "require-end", hex(self.last + 1))
            _write(attr, "times", self.times)
            _write(attr, "probability", 100)
        return self

    def __exit__(self, *what):
        for attr in self.attrs:
            _write(attr, "probability", 0)

    def hit(self):
        """Has one failed?"""
        return any(_read(attr, "times") != self.times for attr in self.attrs)


def at(site, first, last, times=1, passed=0):
    """What fails at that call"""
    assert not site.is_tail, site
    how = Refuse if site.callee in INSTEAD else Below
    return how(first, last, times, passed=passed)


def calls(passed):
    """One of those instead, after @passed that do not fail"""
    return Refuse(0, 2**64 - 1, passed=passed)


class Nth:
    """The nth allocation of this task fails, and none else.  What it copies from
    and to user space counts, too, and fails with EFAULT."""
    def __init__(self):
        self.fd = os.open("/proc/thread-self/fail-nth", os.O_RDWR)

    def arm(self, n):
        os.pwrite(self.fd, b"%d" % n, 0)

    def hit(self):
        """Has it failed?  No more does from now on."""
        try:
            left = int(os.pread(self.fd, 32, 0))
        except OSError as e:
            # to ask was the nth
            assert e.errno == errno.EFAULT
            left = 1
        try:
            os.pwrite(self.fd, b"0", 0)
        except OSError as e:
            assert e.errno == errno.EFAULT
        return not left
