#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""A control group whose memory is used up: who asks for more is told so, nobody
is killed, and the jobs of others do not notice."""
import contextlib
import errno
import os
import socket
import sys
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../lib"))
from atptest import (JOINED, J_FRAGMENT, J_MEMORY, J_TIMEOUT,  # noqa: E402
                     J_WINDOW, Info, Netlink, attr, join, main, new_net, refused, same,
                     sock, start_join, sum_works, test, u32, wait_for)
from cgroup import Group  # noqa: E402
from kmod import load  # noqa: E402

MIB = 1 << 20
OTHERS, JOB = 1, 100
CHUNK = bytes(MIB)
# a machine that is slow is not dead
PATIENT = attr(J_TIMEOUT, 600000)


@contextlib.contextmanager
def group_of_others(limit):
    """A group, beside a job that has nothing to do with it."""
    load()
    new_net()
    nl = Netlink()
    nl.add(OTHERS, more=PATIENT)
    socks = join(OTHERS)
    group = Group("small", limit)
    sum_works(socks, 10000)
    yield nl, group
    sum_works(socks, 10000)
    same(group.killed(), 0)
    group.remove()


def in_group(group, do):
    """In a process of its own; its exit status says whether it went well."""
    pid = os.fork()
    if not pid:
        code = 1
        try:
            group.enter()
            do()
            code = 0
        except BaseException:
            for line in traceback.format_exc().splitlines():
                print("#", line, flush=True)
        finally:
            os._exit(code)
    same(os.waitpid(pid, 0)[1], 0)


def sockets_of(group, count):
    """Made there, used here: the group pays for what they hold, and for nothing
    else."""
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def make():
        for _ in range(count):
            s = sock()
            socket.send_fds(there, [b"x"], [s.fileno()])

    in_group(group, make)
    return [socket.socket(fileno=socket.recv_fds(here, 1, 1)[1][0])
            for _ in range(count)]


@test
def chunks_that_the_group_has_no_memory_for():
    with group_of_others(16 * MIB) as (nl, group):
        poor = sockets_of(group, 8)
        for k, s in enumerate(poor):
            nl.add(JOB + k, more=PATIENT)
            peer = sock()
            start_join(s, JOB + k, 0)
            start_join(peer, JOB + k, 1)
            poor[k] = s, peer
        for s, peer in poor:
            wait_for(lambda s=s: Info(s).state == JOINED, "joined")
            wait_for(lambda s=s: Info(peer).state == JOINED, "joined")
            peer.setblocking(True)
        # 8 times 3 MiB would fit the send buffers
        pushed = [0] * len(poor)
        for k, (s, _) in enumerate(poor):
            for _ in range(3):
                try:
                    s.send(CHUNK)
                    pushed[k] += 1
                except OSError as e:
                    same(errno.errorcode[e.errno], "ENOBUFS")
        same(8 <= sum(pushed) <= 16, True, pushed)
        same(group.stat("sock") <= 16 * MIB, True)
        # blocking does not wait for what other sockets of the group hold
        s = poor[pushed.index(0)][0]
        s.setblocking(True)
        try:
            s.send(CHUNK)
            raise AssertionError("not refused")
        except OSError as e:
            same(errno.errorcode[e.errno], "ENOBUFS")
        # what was pushed is pulled, and makes room for the others
        for n, (s, peer) in zip(pushed, poor):
            s.setblocking(True)
            for _ in range(n):
                peer.send(CHUNK)
                same(s.recv(MIB) == CHUNK == peer.recv(MIB), True)
        for s, peer in poor:
            sum_works([s, peer], 10000)
            s.close()
            peer.close()
        wait_for(lambda: group.stat("sock") < MIB, "nothing left")


@test
def jobs_that_the_group_has_no_memory_for():
    big = attr(J_WINDOW, 4096) + attr(J_FRAGMENT, 1400) + PATIENT

    def add(nl, job):
        nl.add(job, workers=["127.0.0.2"] * 2, more=big)

    def jobs():
        nl = Netlink()
        nl.add(JOB, more=PATIENT)
        socks = join(JOB)
        n = 0
        try:
            while True:
                add(nl, JOB + n + 1)
                n += 1
        except OSError as e:
            same(errno.errorcode[e.errno], "ENOMEM")
        memory = u32(nl.job(JOB + 1)[J_MEMORY])
        same(n >= 2 and n * memory < 64 * MIB, True, (n, memory))
        sum_works(socks, 10000)
        # one goes, one comes
        nl.delete(JOB + 1)
        wait_for(lambda: added(nl), "room")
        sum_works(socks, 10000)
        for job in range(n + 1):
            nl.delete(JOB + job)

    def added(nl):
        """What a job held is freed after a grace period."""
        try:
            add(nl, JOB + 1)
            return True
        except OSError as e:
            same(errno.errorcode[e.errno], "ENOMEM")
            return False

    with group_of_others(64 * MIB) as (_, group):
        in_group(group, jobs)
        wait_for(lambda: group.stat("vmalloc") < MIB, "nothing left")


def not_filtered(ps, workers):
    """The first job of a namespace, which opens its sockets, is added by one whose
    group may send nothing."""
    load()
    new_net()
    group = Group("silent")
    group.send_nothing()
    in_group(group, lambda: Netlink().add(JOB, ps, workers, PATIENT))
    # he does not get there
    in_group(group, lambda: refused(errno.EPERM, socket.socket(
        socket.AF_INET, socket.SOCK_DGRAM).sendto, b"x", ("127.0.0.1", 9)))
    sum_works(join(JOB))
    group.remove()


@test
def who_adds_a_job_does_not_filter_it():
    not_filtered("127.0.0.1", ["127.0.0.2"] * 2)


@test
def who_adds_a_job_does_not_filter_it_ipv6():
    not_filtered("::1", ["::1"] * 2)


main()
