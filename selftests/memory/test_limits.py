#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""What all sockets together may hold, and what a control group pays for."""
import contextlib
import errno
import os
import resource
import socket
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../lib"))
from atptest import (FAILED, JOIN, JOINED, J_FRAGMENT,  # noqa: E402
                     J_MEMORY, J_SERVER, J_TIMEOUT, J_WINDOW, SOL_ATP, Info,
                     Netlink, attr, join, main, new_net, proc_protocols,
                     refused, same, sock, start_join, sum_works, test, u32,
                     wait_for)
from cgroup import Group  # noqa: E402
from kmod import load  # noqa: E402
from leaks import meminfo  # noqa: E402

JOB = 7
PAGE = os.sysconf("SC_PAGESIZE")
# pages that a CPU keeps back before it is seen
SPARE = 256 * os.cpu_count()
CHUNK = bytes(1 << 20)
# in place of a rank
SERVER = 0xffff
SO_SNDBUFFORCE = 32


@contextlib.contextmanager
def pages(*limits):
    """In the file of the limits, for a while; the first namespace has it."""
    name = "/proc/sys/net/atp/mem"
    with open(name, encoding="ascii") as f:
        before = f.read().split()
    # opened already: inside, other namespaces are entered
    with open(name, "w", encoding="ascii") as there, \
         open(name, "w", encoding="ascii") as back:
        there.write(" ".join(map(str, limits)))
        there.flush()
        try:
            yield
        finally:
            back.write(" ".join(before))


def jobs(count):
    """Pairs of joined sockets, a job each."""
    nl = Netlink()
    for job in range(count):
        # a machine that is slow is not dead
        nl.add(job, more=attr(J_TIMEOUT, 600000))
    return nl, [join(job) for job in range(count)]


@test
def never_more_than_all_sockets_may_have():
    load()
    limit = proc_protocols()[1] + 4096
    with pages(limit, limit, limit):
        new_net()
        _, pairs = jobs(12)
        pushed = []
        # 48 MiB would fit the send buffers, 16 MiB may be
        for pair in pairs:
            s = pair[0]
            s.setblocking(False)
            for _ in range(3):
                try:
                    s.send(CHUNK)
                    pushed.append(s)
                except OSError as e:
                    same(errno.errorcode[e.errno], "ENOBUFS")
                same(proc_protocols()[1] <= limit + SPARE, True,
                     proc_protocols())
        # each CPU's reserve may be on either side
        least = (4096 - SPARE) * PAGE // len(CHUNK) - 1
        same(len(pushed) >= least, True, len(pushed))
        same(len(pushed) < 36, True, len(pushed))
        # blocking does not wait for what others hold
        last = pairs[-1][1]
        if pairs[-1][0] not in pushed:
            refused(errno.ENOBUFS, last.send, CHUNK)
        # what one gives back is for the others
        idle = [p for p in pairs if p[0] not in pushed]
        pushed[0].close()
        for pair in idle:
            pair[0].setblocking(True)
            sum_works(pair, 200)
        same(len(idle) > 0, True)
        for pair in pairs:
            for s in pair:
                s.close()
        socks = join(0)
        sum_works(socks, 100000)
        same(proc_protocols()[1] <= limit, True, proc_protocols())


@test
def none_takes_all_when_memory_is_short():
    """One that pushes as much as it can leaves their shares to those that hold
    nothing yet."""
    load()
    limit = proc_protocols()[1] + 8192
    part = bytes(1 << 18)
    with pages(1, 1, limit):
        new_net()
        _, pairs = jobs(12)
        greedy = pairs[0][0]
        greedy.setblocking(False)
        pushed = 0
        while True:
            try:
                greedy.send(part)
                pushed += 1
            except OSError as e:
                same(errno.errorcode[e.errno], "ENOBUFS")
                break
        same(pushed > 0, True)
        for pair in pairs:
            for s in pair:
                if s is not greedy:
                    s.send(part)
        greedy.setblocking(True)
        for pair in pairs:
            for s in pair:
                same(s.recv(len(part)), part)
        for _ in range(pushed - 1):
            pairs[0][1].send(part)
            same(pairs[0][1].recv(len(part)), part)


@test
def shares_are_of_what_is_taken():
    """A chunk takes whole pages: these twice as much as they have bytes."""
    load()
    limit = proc_protocols()[1] + 32768
    part = bytes(PAGE + 4)
    with pages(1, 1, limit):
        new_net()
        _, pairs = jobs(12)
        pushed = []
        for s in (s for pair in pairs for s in pair):
            s.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 25)
            s.setblocking(False)
            pushed.append(0)
            while True:
                try:
                    s.send(part)
                    pushed[-1] += 1
                except OSError as e:
                    same(errno.errorcode[e.errno], "ENOBUFS")
                    break
        print(f"# chunks: {pushed}")
        # of the last, too, but for each CPU's reserve: a chunk takes two pages
        least = max(pushed) - SPARE // 2
        same(least > 0, True, pushed)
        same(min(pushed) >= least, True, pushed)
        for pair in pairs:
            for s in pair:
                s.close()


@test
def each_may_hold_what_it_is_promised():
    """A page of bytes, which takes more, though no share has that much."""
    load()
    part = bytes(3000)
    limit = proc_protocols()[1] + 6 * SPARE
    with pages(1, 1, limit):
        new_net()
        _, pairs = jobs(8)
        # so much that memory is short, whatever CPUs keep back
        for pair in pairs[4:]:
            for s in pair:
                s.send(bytes(SPARE * PAGE // 4), socket.MSG_DONTWAIT)
        # each with a share
        others = [sock() for _ in range(limit)]
        for pair in pairs[:4]:
            for s in pair:
                s.send(part, socket.MSG_DONTWAIT)
                refused(errno.ENOBUFS, s.send, part, socket.MSG_DONTWAIT)
            for s in pair:
                same(s.recv(len(part)), part)
    for s in others:
        s.close()


@test
def no_rank_without_memory_for_its_window():
    load()
    held = []
    with pages(1, 1, 1):
        new_net()
        # 32 ranks of 32 pages at least, of which each CPU's reserve has 256
        Netlink().add(JOB, workers=["127.0.0.2"] * 32,
                      more=attr(J_WINDOW, 4096) + attr(J_TIMEOUT, 600000))
        for rank in range(32):
            held.append(sock())
            held[-1].setblocking(False)
            try:
                held[-1].setsockopt(SOL_ATP, JOIN, struct.pack("II", JOB, rank))
            except BlockingIOError:
                continue
            except OSError as e:
                same(errno.errorcode[e.errno], "ENOBUFS")
                break
        same(len(held) < 32, True, len(held))
        same(proc_protocols()[1] <= 1 + SPARE, True, proc_protocols())
        for s in held[:-1]:
            s.close()
    # that socket can join when there is memory
    start_join(held[-1], JOB, len(held) - 1)
    others = [sock() for _ in range(31)]
    for rank, s in zip(set(range(32)) - {len(held) - 1}, others):
        start_join(s, JOB, rank)
    for s in others + held[-1:]:
        wait_for(lambda s=s: Info(s).state == JOINED, "joined")


def taken():
    """Bytes, of all that the kernel has"""
    return (meminfo("SUnreclaim") + meminfo("VmallocUsed")) << 10


@test
def no_more_is_taken_than_charged():
    """Also of a length for which the allocator has nothing that fits."""
    load()
    new_net()
    _, pairs = jobs(8)
    # what else the kernel keeps at hand for that much
    spare = SPARE * PAGE + (8 << 20)
    # none from caches of objects, beside which a kernel may have something else
    for length, count in ((8196, 300), (40004, 100), ((1 << 20) + 4, 3),
                          ((2 << 20) + 4, 1)):
        before, charged = taken(), proc_protocols()[1]
        for pair in pairs:
            for _ in range(count):
                pair[0].send(bytes(length), socket.MSG_DONTWAIT)
        took = taken() - before
        charged = (proc_protocols()[1] - charged) * PAGE
        same(took > 0.9 * 8 * count * length, True, (length, took))
        same(took < charged + spare, True, (length, took, charged))
        for pair in pairs:
            for _ in range(count):
                pair[1].send(bytes(length))
                for s in pair:
                    same(len(s.recv(length)), length)


@test
def no_ps_takes_more_than_it_counts():
    load()
    new_net()
    nl = Netlink()
    before, counted = taken(), 0
    for job in range(16):
        # a little more than a power of two
        nl.add(job, workers=["127.0.0.2"] * 32, more=attr(J_TIMEOUT, 600000))
        counted += u32(nl.job(job)[J_MEMORY])
    took = taken() - before
    print(f"# {took >> 10} KiB taken, {counted >> 10} KiB counted")
    # the rest is what else the kernel takes meanwhile
    same(took > counted // 2, True, (took, counted))
    same(took < counted + (4 << 20), True, (took, counted))


@test
def no_window_takes_more_than_is_charged():
    load()
    new_net()
    nl = Netlink()
    for job in range(4):
        nl.add(job, workers=["127.0.0.2"] * 32, more=attr(J_WINDOW, 4096))
    before, charged = taken(), proc_protocols()[1]
    ranks = [join(job, 32) for job in range(4)]
    took = taken() - before
    charged = (proc_protocols()[1] - charged) * PAGE
    print(f"# {took >> 10} KiB taken, {charged >> 10} KiB charged")
    same(charged > len(ranks) * 32 * 4096 * 16, True, charged)
    # sockets and their files, and what else the kernel takes meanwhile
    same(took > charged - SPARE * PAGE, True, (took, charged))
    same(took < charged + SPARE * PAGE + (4 << 20), True, (took, charged))


def step(down, up):
    """Tell the parent that a step is done, wait for it."""
    os.write(up, b"x")
    os.read(down, 1)


@test
def a_group_pays_for_what_its_processes_push_and_add():
    """Chunks and windows as memory of sockets; jobs, and nothing afterwards."""
    load()
    new_net()
    # the machine's first memory per CPU is charged to nobody; others have it
    for job in range(100, 132):
        Netlink().add(job, workers=["127.0.0.2"] * 32,
                      more=attr(J_WINDOW, 16) + attr(J_FRAGMENT, 248))
    group = Group("pays")
    up, down = os.pipe(), os.pipe()
    pid = os.fork()
    if not pid:
        code = 1
        try:
            group.enter()
            nl, pairs = jobs(8)
            step(down[0], up[1])
            for pair in pairs:
                pair[0].send(CHUNK)
            step(down[0], up[1])
            for pair in pairs:
                pair[1].send(CHUNK)
                for s in pair:
                    same(s.recv(len(CHUNK)), CHUNK)
                    s.close()
            for job in range(8):
                nl.delete(job)
            code = 0
        finally:
            os.write(up[1], b"x")
            os._exit(code)
    os.read(up[0], 1)
    memory = sum(u32(Netlink().job(job)[J_MEMORY]) for job in range(8))
    # the kernel sums up what CPUs have counted every two seconds, or at once
    # if that is much
    wait_for(lambda: group.stat("vmalloc") + group.stat("slab") >= memory,
             f"{memory} of vmalloc and slab")
    wait_for(lambda: group.stat("percpu") > 0, "percpu")
    wait_for(lambda: group.stat("sock") >= 16 * 4096, "windows")
    before = group.stat("sock")
    os.write(down[1], b"x")
    os.read(up[0], 1)
    wait_for(lambda: group.stat("sock") - before >= 8 * len(CHUNK), "chunks")
    os.write(down[1], b"x")
    same(os.waitpid(pid, 0)[1], 0)
    # charges are kept in stock per CPU; a chunk or a PS would be more
    for name in ("sock", "vmalloc", "percpu"):
        wait_for(lambda n=name: group.stat(n) < 1 << 16, f"no {name} left")
    group.remove()


def areas(size):
    """Of virtual memory that the module has allocated, of at least that size."""
    with open("/proc/vmallocinfo", encoding="ascii") as f:
        return [line for line in f
                if "[atp]" in line and int(line.split()[1]) >= size]


@test
def a_removed_job_has_no_ps():
    """What is no longer counted is not held, though a socket keeps the job."""
    load()
    new_net()
    nl = Netlink()
    for rank in 0, SERVER:
        # more than any other job here, and than there is in one piece
        nl.add(JOB, more=attr(J_WINDOW, 4096) + attr(J_SERVER, b"\1"))
        size = u32(nl.job(JOB)[J_MEMORY])
        held = sock()
        start_join(held, JOB, rank)
        same(len(areas(size)), 1)
        nl.delete(JOB)
        wait_for(lambda s=size: not areas(s), "freed")
        same(Info(held).state, FAILED)
        held.close()


resource.setrlimit(resource.RLIMIT_NOFILE, (8192, 8192))
main()
