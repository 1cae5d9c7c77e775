#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""10,000 sockets and 64 jobs at a time; afterwards nothing is left of them.

All ranks of all jobs are here: 2,048 sockets join, the others stay unbound.
"""
import array
import os
import resource
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../lib"))
from atptest import (JOINED, J_FRAGMENT, J_MEMORY, J_TIMEOUT,  # noqa: E402
                     J_WINDOW, GET, SOCK_GET, Info, Netlink, attr, attrs, main,
                     new_net, proc_protocols, same, sock, start_join, test, u32,
                     wait_for)
from kmod import load, unload, users  # noqa: E402
from leaks import Leaks  # noqa: E402

SOCKETS, JOBS, RANKS, LANES = 10000, 64, 32, 16
# pages that a CPU keeps back before it is seen
SPARE = 256 * os.cpu_count()


def values(job, rank):
    return array.array("i", (job * 1000 + rank * (k + 1)
                             for k in range(LANES)))


def total(job):
    """In Python's own integers"""
    columns = zip(*(values(job, rank) for rank in range(RANKS)))
    return array.array("i", map(sum, columns)).tobytes()


def add_jobs(nl):
    small = attr(J_WINDOW, 16) + attr(J_FRAGMENT, 248)
    # a machine that is slow is not dead
    for job in range(JOBS):
        nl.add(job, workers=["127.0.0.2"] * RANKS,
               more=small + attr(J_TIMEOUT, 600000))


def join_all(socks):
    for k, s in enumerate(socks[:JOBS * RANKS]):
        start_join(s, k // RANKS, k % RANKS)
    for s in socks[:JOBS * RANKS]:
        wait_for(lambda s=s: Info(s).state == JOINED, "joined")
        s.setblocking(True)


def sums(socks):
    """One chunk through every job, all at the same time."""
    for k, s in enumerate(socks):
        s.send(values(k // RANKS, k % RANKS).tobytes())
    for job in range(JOBS):
        want = total(job)
        for s in socks[job * RANKS:(job + 1) * RANKS]:
            same(s.recv(LANES * 4), want, f"sum of job {job}")


def ps_memory(nl):
    return sum(u32(dict(attrs(job))[J_MEMORY]) for job in nl.dump(GET))


def everything(nl, count):
    add_jobs(nl)
    socks = [sock() for _ in range(count)]
    same(proc_protocols()[0], count)
    join_all(socks)
    same(len(nl.dump(SOCK_GET)), JOBS * RANKS)
    same(ps_memory(nl) > JOBS * 2 * 16 * 248, True)
    sums(socks[:JOBS * RANKS])
    # and what is in the middle of something
    for s in socks[:JOBS * RANKS:RANKS]:
        s.send(bytes(4000))
    for job in range(0, JOBS, 2):
        nl.delete(job)
    for s in socks:
        s.close()
    for job in range(1, JOBS, 2):
        nl.delete(job)
    same(proc_protocols()[0], 0)
    wait_for(lambda: not users(), "references")


@test
def ten_thousand_sockets_and_64_jobs():
    # a cache each has a file open while it is watched
    resource.setrlimit(resource.RLIMIT_NOFILE, (SOCKETS + 1000, SOCKETS + 1000))
    load()
    new_net()
    nl = Netlink()
    # tables of descriptors, caches and memory per CPU grow for the first
    everything(nl, JOBS * RANKS)
    leaks = Leaks()
    everything(nl, SOCKETS)
    same(proc_protocols()[1] <= SPARE, True, proc_protocols())
    # one object per socket, rank or job would be more
    leaks.none(JOBS)
    del nl
    unload()


main()
