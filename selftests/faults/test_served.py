#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Runs with an application at the PS that end: what it is told, and the workers.

Its pending call, its error queue and its host's events say the same; and the next
run works.  How it comes, goes and is waited for: ../socket/test_server.c and
../rack/test_server.py.

usage: test_served.py [WORD]...	those with such a word in their name
"""

import errno
import os
import struct
import subprocess
import sys
import threading

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(here, "../lib"), os.path.join(here, "../rack")]
from atptest import LIMIT, wait_for  # noqa: E402
from rack import atp, rack, run  # noqa: E402
from reports import ErrorMessage, Monitor, error_message  # noqa: E402
from test_sockets import (  # noqa: E402
    ATP_DTYPE, DISAGREE, INT32, LEFT, PS_SILENT, REMOVED, SILENT, SOL_ATP,
    STATE_FAILED, Rank, expect,
)

JOB = 7
WORKERS = 3
LAST = WORKERS - 1
ALL = (1 << WORKERS) - 1
SERVER = 0xffff
VALUES = 3
SIZE = 4 * VALUES


class Members:
    """The ranks and the application, joined"""

    def __enter__(self):
        self.server = Rank(SERVER, host="ps")
        self.ranks = [Rank(rank) for rank in range(WORKERS)]
        members = [self.server, *self.ranks]
        for one in members:
            one.begin()
        for one in members:
            one.joined()
        for rank in self.ranks:
            rank.sock.setsockopt(SOL_ATP, ATP_DTYPE, INT32)
        return self

    def __exit__(self, *_):
        for one in (self.server, *self.ranks):
            one.close()

    def serve(self):
        """The application answers a chunk with twice the sums."""
        left = VALUES
        while left:
            self.server.wait(1)
            got = self.server.sock.recv(4 * left)
            sums = struct.unpack(f"={len(got) // 4}i", got)
            self.server.push(*[2 * value for value in sums])
            left -= len(sums)

    def exchange(self):
        for rank in self.ranks:
            rank.push(*[(rank.rank + 1) * (10 + k) for k in range(VALUES)])
        self.serve()
        total = 2 * WORKERS * (WORKERS + 1) // 2
        for rank in self.ranks:
            expect(rank.pull(VALUES),
                   tuple(total * (10 + k) for k in range(VALUES)))


def a_run_works():
    with Members() as m:
        m.exchange()


class Waiting(threading.Thread):
    """A pull that sleeps in the kernel"""

    def __init__(self, member):
        super().__init__(daemon=True)
        self.member, self.outcome = member, None
        member.sock.setblocking(True)
        self.start()

    def run(self):
        try:
            self.outcome = self.member.sock.recv(SIZE)
        except OSError as error:
            self.outcome = error.errno

    def ended(self):
        self.join(LIMIT)
        return self.outcome


def ends(cause, remedy, at_ps, at_workers, blamed):
    """at_ps, at_workers: (errno, reason, ranks); ranks None: some of them"""
    with Monitor("ps", JOB) as monitor, Members() as m:
        try:
            m.exchange()
            calls = [Waiting(one) for one in (m.server, *m.ranks[:LAST])]
            for rank in m.ranks[:LAST]:
                rank.push(*[1] * VALUES)
            cause(m)
            for call, (number, reason, ranks) in zip(
                    calls, [at_ps] + [at_workers] * LAST):
                expect(call.ended(), number)
                state, why, who = call.member.info()
                expect((state, why), (STATE_FAILED, reason))
                if ranks is None:
                    expect((bool(who), who & ~ALL), (True, 0))
                else:
                    expect(who, ranks)
                told = error_message(call.member.sock)
                if call.member is m.server:
                    expect(told, ErrorMessage(number, JOB, SERVER, reason, who,
                                              0, 0))
                    event = monitor.event("failed", blamed)
                    expect((event["rank"], event["fragment"],
                            sum(1 << rank for rank in event["ranks"])),
                           (SERVER, 0, who))
                else:
                    # the first fragment was answered
                    expect((told.error, told.reason, told.ranks,
                            told.sequence), (number, reason, who, 1))
        finally:
            remedy()
    a_run_works()


def nothing():
    pass


def a_worker_leaves():
    why = (errno.ECONNRESET, LEFT, 1 << LAST)
    ends(lambda m: m.ranks[LAST].close(), nothing, why, why, "left")


def a_worker_s_host_dies():
    why = (errno.ETIMEDOUT, SILENT, 1 << LAST)
    ends(lambda _: rack("link", f"w{LAST}", "down"),
         lambda: rack("link", f"w{LAST}", "up"), why, why, "silent")


def the_ps_s_host_is_cut_off():
    """To the workers it is dead, and they are to the application."""
    ends(lambda _: rack("link", "ps", "down"),
         lambda: rack("link", "ps", "up"),
         (errno.ETIMEDOUT, SILENT, None), (errno.EHOSTDOWN, PS_SILENT, 0),
         "silent")


def the_job_is_removed():
    def cause(_):
        expect(atp("ps", "job", "del", JOB), (0, ""))

    def remedy():
        words = [w for rank in range(WORKERS)
                 for w in ("worker", f"10.0.0.{rank + 1}")]
        expect(atp("ps", "job", "add", JOB, "ps", "10.0.0.254", *words,
                   "timeout", 3000, "server"), (0, ""))
    why = (errno.EIDRM, REMOVED, 0)
    ends(cause, remedy, why, why, "removed")


def the_ranks_disagree():
    why = (errno.EPROTO, DISAGREE, 1 << LAST)
    ends(lambda m: m.ranks[LAST].push(1), nothing, why, why, "disagree")


TESTS = (
    a_run_works,
    a_worker_leaves,
    a_worker_s_host_dies,
    the_ps_s_host_is_cut_off,
    the_job_is_removed,
    the_ranks_disagree,
)


def main():
    subprocess.run(["modprobe", "atp"], check=True)
    rack("up", WORKERS, 1500)
    rack("switch_on")
    rack("job_add", JOB, WORKERS, 4, "timeout", 3000, "server")
    try:
        return run(TESTS)
    finally:
        rack("down")


if __name__ == "__main__":
    sys.exit(main())
