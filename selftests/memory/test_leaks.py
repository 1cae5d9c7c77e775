#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""lib/leaks.py sees what is kept: to it, that is what a leak looks like."""
import ctypes
import os
import resource
import socket
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../lib"))
from atptest import (J_FRAGMENT, J_WINDOW, Netlink, attr,  # noqa: E402
                     libc, main, new_net, same, sock, test)
from kmod import load  # noqa: E402
import leaks  # noqa: E402

# A few cycles only, and one object in each; where cycles are cheap more of them,
# as what the rest of the machine takes and returns is measured, too.
CYCLES = 100
CHEAP = 400
# In these the object is kept by one of so many cycles.
SELDOM = 8


def found(keep, what, cycles=CYCLES):
    """@keep: a cycle that leaves something"""
    seen = leaks.Leaks()
    for k in range(cycles):
        keep(k)
    leaks.LIMIT = 3
    try:
        seen.none(cycles)
        raise AssertionError(f"{what}: nothing was found")
    except AssertionError as e:
        same(what in str(e), True, str(e))


def found_until_released(keep, release, what):
    """@release: what gives all of it back"""
    for k in range(CHEAP):
        keep(k)
    release()
    seen = leaks.Leaks()
    found(keep, what, CHEAP)
    release()
    leaks.LIMIT = 60
    seen.none(CHEAP)


@test
def one_socket_in_each_cycle():
    held = []
    found_until_released(lambda k: held.append(sock()), held.clear, "'ATP'")


@test
def one_packet_in_each_cycle():
    """Of a cache that is not ours"""
    pairs = []

    def keep(_):
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        here.send(b"x")
        pairs.append((here, there))

    found_until_released(keep, pairs.clear, "'skbuff_head_cache'")


@test
def one_packet_in_every_eighth_cycle():
    pairs = []

    def keep(cycle):
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        here.send(b"x")
        if cycle % SELDOM == 0:
            pairs.append((here, there))

    found_until_released(keep, pairs.clear, "'skbuff_head_cache'")


@test
def counting_counts_nothing_of_its_own():
    """Of what files, names and small buffers are made of"""
    slabs = leaks.Slabs()
    first = slabs.count()
    small = [name for name in first if name.startswith("kmalloc-")
             or name in ("seq_file", "names_cache")]
    for _ in range(20):
        with open("/proc/self/stat", encoding="ascii") as f:
            f.read()
        now = slabs.count()
        grown = {name: now[name] - first[name] for name in small}
        same({k: n for k, n in grown.items() if n > CYCLES // 10}, {})


def jobs(more, cycles, what):
    new_net()
    nl = Netlink()
    found(lambda k: nl.add(k, more=more), what, cycles)


class Map(ctypes.Structure):
    """What bpf(BPF_MAP_CREATE) reads"""
    _fields_ = [(name, ctypes.c_uint32) for name in
                ("type", "key_size", "value_size", "max_entries")]


@test
def memory_per_cpu_in_each_cycle():
    """Each a map's, more than what may be in stock from what ran before"""
    percpu_array = Map(6, 4, 32768, 1)
    held = []

    def keep(_):
        fd = libc.syscall(321, 0, ctypes.byref(percpu_array),    # x86-64
                          ctypes.sizeof(percpu_array))
        same(fd >= 0, True, os.strerror(ctypes.get_errno()))
        held.append(fd)

    found(keep, "'Percpu KiB'")
    same(len(held), CYCLES)


@test
def mapped_memory_in_each_cycle():
    """More than pages in a row can be had"""
    jobs(attr(J_WINDOW, 2048), 30, "'VmallocUsed KiB'")


@test
def pages_in_each_cycle():
    """In a row, of which no cache knows: a PS that needs almost 64 has them"""
    jobs(attr(J_WINDOW, 128) + attr(J_FRAGMENT, 912), CYCLES, "'SUnreclaim KiB'")


load()
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
main()
