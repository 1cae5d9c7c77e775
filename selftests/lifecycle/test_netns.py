#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Network namespaces that end while fragments fly between them.

A namespace in which nobody has a socket ends at once, with its jobs and its PS;
one with a worker's socket, or that of an application at the PS, when that is
closed.  The switch's takes its ports
with it, whatever its program has in hand; what is pinned goes when the next one
comes.
"""
import array
import ctypes
import errno
import glob
import itertools
import mmap
import os
import signal
import socket
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../lib"))
from atptest import (AF_ATP, DTYPE, INT32, JOIN, SOL_ATP,  # noqa: E402
                     wait_for)
from kmod import load, unload, users  # noqa: E402
from rack import atp, inside, rack, run  # noqa: E402

JOB, WORKERS, LANES = 7, 3, 20000
SERVER = 0xffff


def lanes(rank, step):
    """Other values in each of eight steps"""
    few = array.array("i", ((rank + 1) * (k << step % 8) for k in range(500)))
    return few * (LANES // 500)


CHUNKS = [[lanes(rank, step).tobytes() for step in range(8)]
          for rank in range(WORKERS)]
SUMS = [array.array("i", map(sum, zip(*(lanes(rank, step)
                                        for rank in range(WORKERS))))).tobytes()
        for step in range(8)]


class Member:
    """A process in a run; what it says is in memory that it shares."""
    def __init__(self, rank, host, lives_there=False):
        self.rank, self.host = rank, host
        # steps done; how it ended: 0 not yet, else an errno, -1 a wrong sum
        self.said = mmap.mmap(-1, 16)
        self.pid = os.fork()
        if not self.pid:
            self.main(lives_there)

    def main(self, lives_there):
        end = -1
        try:
            end = self.take_part(lives_there)
        finally:
            struct.pack_into("i", self.said, 8, end)
            os._exit(0)

    def take_part(self, lives_there):
        if lives_there:
            with open(f"/run/netns/atp-{self.host}", "rb") as f:
                ctypes.CDLL(None).setns(f.fileno(), 0)
            s = socket.socket(AF_ATP, socket.SOCK_SEQPACKET, 0)
        else:
            with inside(self.host):
                s = socket.socket(AF_ATP, socket.SOCK_SEQPACKET, 0)
        s.setsockopt(SOL_ATP, DTYPE, INT32)
        try:
            s.setsockopt(SOL_ATP, JOIN, struct.pack("II", JOB, self.rank))
            for step, right in enumerate(self.add(s), 1):
                if not right:
                    return -1
                struct.pack_into("q", self.said, 0, step)
        except OSError as e:
            return e.errno

    @property
    def steps(self):
        return struct.unpack_from("q", self.said, 0)[0]

    @property
    def ended(self):
        return struct.unpack_from("i", self.said, 8)[0]

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


class Worker(Member):
    """Adds as fast as it can and checks every sum"""
    def add(self, s):
        for step in itertools.count():
            s.send(CHUNKS[self.rank][step % 8])
            yield s.recv(LANES * 4) == SUMS[step % 8]


class Application(Member):
    """Answers with the sums, as they come"""
    def add(self, s):
        while True:
            sums = s.recv(LANES * 4)
            yield s.send(sums) == len(sums)


def begin(family, lives_there=False, switch=False, server=False):
    """A rack, and members of a run that are adding."""
    load()
    rack("up", WORKERS)
    if switch:
        rack("switch_on")
    rack("job_add", JOB, WORKERS, family, "timeout", 5000,
         *["server"] * server)
    members = [Worker(rank, f"w{rank}", lives_there) for rank in range(WORKERS)]
    if server:
        members.append(Application(SERVER, "ps"))
    go_on(members)
    if switch:
        the_switch_adds()
    return members


def the_switch_adds():
    counters = rack("switch_counters", JOB)
    if "aggregated" not in counters.split():
        raise AssertionError(f"nothing was added in the switch: {counters}")


def pinned():
    return set(glob.glob("/sys/fs/bpf/atp/netns-*"))


def go_on(workers):
    """Fragments fly, and sums are right."""
    was = [w.steps for w in workers]
    for w, n in zip(workers, was):
        wait_for(lambda w=w, n=n: w.steps > n + 2 or w.ended, "sums")
        if w.ended:
            raise AssertionError(f"rank {w.rank} ended: {w.ended}")


def delete(*hosts):
    for host in hosts:
        subprocess.run(["ip", "netns", "del", f"atp-{host}"], check=True)


def ends(workers, *errnos):
    for w in workers:
        wait_for(lambda w=w: w.ended, f"an error of rank {w.rank}")
        if w.ended not in errnos:
            raise AssertionError(f"rank {w.rank}: {w.ended}")


def nothing_is_left(workers):
    for w in workers:
        w.kill()
    rack("down")
    wait_for(lambda: not users(), "references")
    unload()


def the_ps_ends_and_every_rank_has_an_error():
    workers = begin(4)
    delete("ps")
    ends(workers, errno.EHOSTDOWN)
    nothing_is_left(workers)


def the_ps_ends_with_its_application():
    """Its socket keeps the namespace, and the sums go on.  When it is killed it
    owes a result, so no rank need wait until the PS is silent."""
    *workers, application = begin(4, server=True)
    delete("ps")
    go_on([*workers, application])
    os.kill(application.pid, signal.SIGSTOP)
    wait_for(lambda: "waits for the server" in atp("w0", "job", "stall")[1],
             "a result that is owed")
    application.kill()
    ends(workers, errno.EOWNERDEAD)
    nothing_is_left(workers)


def a_name_goes_and_the_sums_go_on():
    """The worker's socket keeps its namespace."""
    workers = begin(4)
    delete("w0", "w2")
    go_on(workers)
    go_on(workers)
    nothing_is_left(workers)


def a_worker_dies_with_its_namespace():
    """Its last word may reach the PS, or not any more."""
    workers = begin(6, lives_there=True)
    delete("w1")
    workers[1].kill()
    others = [workers[0], workers[2]]
    ends(others, errno.ECONNRESET, errno.ETIMEDOUT)
    nothing_is_left(others)


def everything_ends_at_once():
    workers = begin(6, lives_there=True, switch=True)
    delete("ps", "switch", *(f"w{w.rank}" for w in workers))
    for w in workers:
        os.kill(w.pid, signal.SIGKILL)
    for w in workers:
        os.waitpid(w.pid, 0)
    nothing_is_left([])


def the_switch_ends_while_it_adds():
    """Nobody reaches the PS any more."""
    workers = begin(4, switch=True)
    was = pinned()
    delete("switch")
    ends(workers, errno.EHOSTDOWN)
    nothing_is_left(workers)
    dead = pinned() & was
    if not dead:
        raise AssertionError("nothing was pinned")

    # another one has cleared that away, and takes its own with it
    workers = begin(6, switch=True)
    if pinned() & dead:
        raise AssertionError(f"{dead} before, {pinned()} now")
    nothing_is_left(workers)
    if pinned():
        raise AssertionError(f"{pinned()} is left")


if __name__ == "__main__":
    sys.exit(run([the_ps_ends_and_every_rank_has_an_error,
                  the_ps_ends_with_its_application,
                  a_name_goes_and_the_sums_go_on,
                  a_worker_dies_with_its_namespace,
                  everything_ends_at_once,
                  the_switch_ends_while_it_adds]))
