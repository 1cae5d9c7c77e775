#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The same again, thousands of times: the memory comes back."""
import ctypes
import errno
import os
import socket
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../lib"))
from atptest import (AF_ATP, FAILED, J_SERVER, JOINED, Info,  # noqa: E402
                     Netlink, attr, join, libc, main, new_net,
                     proc_protocols, pulled, pushed, same, sock, start_join,
                     sum_works, test, wait_for)
from kmod import load, unload, users  # noqa: E402
from leaks import Leaks  # noqa: E402

JOB = 7
OTHER = 8
SERVER = 0xffff
REMOVED = 7         # enum atp_reason
LANES = 750         # of a chunk of some fragments


def job_kept(ranks=2):
    """A job that stays: the UDP port need not be opened in each cycle, and its
    sums tell whether the others harm it."""
    new_net()
    nl = Netlink()
    nl.add(JOB, workers=["127.0.0.2"] * ranks)
    return nl


def bind(s, job, rank):
    """Python's bind() knows no such family."""
    address = struct.pack("=HHI8x", AF_ATP, rank, job)
    if libc.bind(s.fileno(), address, len(address)):
        raise OSError(ctypes.get_errno(), "bind")


def error(s):
    return s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)


def repeat(cycle, count, before=None):
    """What is allocated once, or kept at hand, is there after a few."""
    for k in range(before or count // 20):
        cycle(k)
    leaks = Leaks()
    for k in range(count):
        cycle(k)
    leaks.none(count)


@test
def ten_thousand_sockets_one_after_the_other():
    new_net()
    repeat(lambda k: sock().close(), 10000)
    same(proc_protocols()[0], 0)


@test
def ten_thousand_sockets_that_begin_to_join():
    job_kept()

    def cycle(k):
        s = sock()
        start_join(s, JOB, 0)
        s.close()

    repeat(cycle, 10000)
    same(proc_protocols()[0], 0)
    sum_works(join(JOB))


@test
def thousands_of_chunks_that_are_never_pulled():
    """Pushed by ranks that are closed before anything came back"""
    nl = job_kept()
    nl.add(OTHER)

    def cycle(k):
        s, t = join(OTHER)
        for _ in range(10):
            s.send(bytes(3000))
        s.close()
        t.close()

    repeat(cycle, 300)
    same(proc_protocols()[0], 0)
    sum_works(join(OTHER))


def removed(socks):
    """Each learns that its job was removed, once."""
    for s in socks:
        same(error(s), errno.EIDRM)
        same(error(s), 0)
        info = Info(s)
        same((info.state, info.reason, info.ranks), (FAILED, REMOVED, 0))


@test
def a_thousand_jobs_that_go_before_their_workers():
    """They have pushed, both or one of them, so that packets are on their way
    and a chunk waits; or they wait for a peer that never comes, or are only
    bound."""
    nl = job_kept()
    kept = join(JOB)

    def cycle(k):
        nl.add(OTHER)
        if k % 2:
            socks = waiting = join(OTHER)
            for s in socks[k % 4 // 2:]:
                s.send(bytes(3000))
        else:
            socks = [sock(), sock()]
            waiting = socks[:1]
            start_join(socks[0], OTHER, 0)
            bind(socks[1], OTHER, 1)
        if not k % 10:
            sum_works(kept, 10)
        nl.delete(OTHER)
        removed(waiting)
        for s in socks:
            s.close()

    repeat(cycle, 1000)
    same(proc_protocols()[0], 2)
    sum_works(kept)


@test
def hundreds_of_jobs_that_go_after_their_workers():
    """These were joined, or waited for a peer, or were only bound."""
    nl = job_kept()
    kept = join(JOB)

    def cycle(k):
        nl.add(OTHER)
        if k % 2:
            socks = join(OTHER)
        else:
            socks = [sock(), sock()]
            start_join(socks[0], OTHER, 0)
            bind(socks[1], OTHER, 1)
        for s in socks:
            s.close()
        nl.delete(OTHER)

    repeat(cycle, 200)
    same(proc_protocols()[0], 2)
    sum_works(kept)


def join_served(nl):
    """A job with an application at the PS: its socket, and those of two ranks"""
    nl.add(OTHER, more=attr(J_SERVER, b"\1"))
    server, *ranks = socks = [sock() for _ in range(3)]
    start_join(server, OTHER, SERVER)
    for rank, s in enumerate(ranks):
        start_join(s, OTHER, rank)
    for s in socks:
        wait_for(lambda s=s: Info(s).state == JOINED, "joined")
        s.setblocking(True)
    return server, ranks


@test
def a_thousand_jobs_with_an_application_at_the_ps():
    """It has pulled nothing, or sums that it answers or does not, when
    the job goes; closed before it or after, and before the ranks or after."""
    nl = job_kept()
    kept = join(JOB)

    def cycle(does, k):
        server, ranks = join_served(nl)
        for rank, s in enumerate(ranks, 1):
            pushed(s, *range(0, LANES * rank, rank))
        if does == "pulls":
            server.recv(4 * LANES)
        if does == "answers":
            # as they come
            left = 4 * LANES
            while left:
                left -= server.send(server.recv(left))
            same(pulled(ranks[k % 2], LANES), list(range(0, 3 * LANES, 3)))
        if k % 4 < 2:
            nl.delete(OTHER)
        for s in (server, *ranks) if k % 2 else (*ranks, server):
            s.close()
        if k % 4 >= 2:
            nl.delete(OTHER)
        if not k % 10:
            sum_works(kept, 10)

    # apart, so that what one of them leaves is more than comes and goes
    for does in ("nothing", "pulls", "answers"):
        repeat(lambda k, does=does: cycle(does, k), 400)
    same(proc_protocols()[0], 2)
    sum_works(kept)


@test
def a_job_that_comes_and_goes_under_its_sockets():
    """The sockets stay, and join each job anew."""
    nl = job_kept()
    socks = [sock(), sock()]

    def cycle(k):
        nl.add(OTHER)
        for rank, s in enumerate(socks):
            start_join(s, OTHER, rank)
        for s in socks:
            wait_for(lambda s=s: Info(s).state == JOINED, "joined")
        nl.delete(OTHER)
        for s in socks:
            same(error(s), errno.EIDRM)

    repeat(cycle, 100)
    for s in socks:
        s.close()
    sum_works(join(JOB))


@test
def a_hundred_namespaces_with_jobs():
    """Each with jobs, one of them running, that end with it."""
    def cycle(k):
        pid = os.fork()
        if not pid:
            new_net()
            nl = Netlink()
            nl.add(JOB)
            nl.add(OTHER, ps="127.0.0.3")
            socks = join(JOB)
            sum_works(socks, 10)
            socks[0].send(bytes(100000))
            os._exit(0)
        same(os.waitpid(pid, 0)[1], 0)

    # they end in batches, in the background
    repeat(cycle, 50, 50)
    wait_for(lambda: not users(), "references")


@test
def loaded_a_hundred_times():
    """Each time with a run that works."""
    new_net()

    def cycle(k):
        load()
        nl = Netlink()
        nl.add(JOB)
        socks = join(JOB)
        sum_works(socks, 10)
        for s in socks:
            s.close()
        if k % 2:
            nl.delete(JOB)
        unload()

    unload()
    repeat(cycle, 100)


# Else most of the time would be spent waiting for grace periods.
with open("/sys/kernel/rcu_expedited", "w", encoding="ascii") as switch:
    switch.write("1")
main()
