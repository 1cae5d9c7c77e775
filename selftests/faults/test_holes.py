#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""A hop loses long packets and says nothing, as one of a smaller MTU does,
while PING and PONG pass: nobody is silent, but the run ends.

usage: test_holes.py [WORD]...	those with such a word in their name
"""

import errno
import os
import select
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(here, "../lib"), os.path.join(here, "../rack")]
from atptest import LIMIT  # noqa: E402
from rack import hole, rack, run  # noqa: E402
from reports import ErrorMessage, Monitor, error_message, tell  # noqa: E402
from test_sockets import (  # noqa: E402
    BRISK, LEFT, STATE_FAILED, TIMEOUT, WORKERS, Run, all_to_all, expect,
    fails,
)

UNANSWERED = 12
# A full fragment
CHUNK = range(62)


def rounds(ranks):
    """Full fragments go both ways, and round trips are known."""
    for _ in range(20):
        for rank in ranks:
            rank.push(*CHUNK)
        for rank in ranks:
            expect(rank.pull(len(CHUNK)), tuple(WORKERS * n for n in CHUNK))


def ends(rank, number, reason, ranks):
    """By the socket, its error queue, and what the tool says of it."""
    # with a timer that is long it takes a minute
    if not rank.wait(select.POLLERR, LIMIT):
        raise AssertionError(f"nothing in {LIMIT} s, {rank.info()}")
    expect(rank.info(), (STATE_FAILED, reason, ranks))
    message = error_message(rank.sock)
    expect(message._replace(sequence=0, missing=0),
           ErrorMessage(number, BRISK, rank.rank, reason, ranks, 0, 0))
    fails(number, rank.sock.recv, 4)
    fails(number, rank.sock.send, bytes(4))
    return message.sequence


def results_of_one_rank():
    """The PS has all that it has sent; the others come to wait for it."""
    with Monitor("ps", BRISK) as at_ps, Monitor("w1", BRISK) as at_worker, \
            Run(job=BRISK) as ranks:
        rounds(ranks)
        with hole("w1"):
            for rank in ranks:
                rank.push(*CHUNK)
            for rank in ranks[0], ranks[2]:
                expect(rank.pull(len(CHUNK)),
                       tuple(WORKERS * n for n in CHUNK))
                rank.push(*CHUNK)
            stuck = ends(ranks[1], errno.ECOMM, UNANSWERED, 1 << 1)
            for rank in ranks[0], ranks[2]:
                expect(ends(rank, errno.ECONNRESET, LEFT, 1 << 1), stuck + 1)
        event = at_worker.event("failed", "unanswered")
        expect((event["rank"], event["ranks"], event["fragment"]),
               (1, [1], stuck))
        expect(at_ps.event("ended", "left")["ranks"], [1])
        shown, = tell("w1", "sock", "show")
        expect((shown["state"], shown["reason"], shown["blamed"]),
               ("failed", "unanswered", [1]))
    a_run_works()


def gradients_of_all_ranks():
    """Nothing comes to the PS, so it waits for nobody."""
    with Monitor("w0", BRISK) as at_worker, Run(job=BRISK) as ranks:
        rounds(ranks)
        with hole("ps"):
            for rank in ranks:
                rank.push(*CHUNK)
            for rank in ranks:
                ends(rank, errno.ECOMM, UNANSWERED, 1 << rank.rank)
        event = at_worker.event("failed", "unanswered")
        expect((event["rank"], event["ranks"]), (0, [0]))
    a_run_works()


def a_run_works():
    with Run(job=BRISK) as ranks:
        all_to_all(ranks)


def with_a_switch(test):
    """The same, if the sums are made before."""

    def switched():
        rack("switch_on")
        test()

    switched.__name__ = f"{test.__name__}_with_a_switch"
    return switched


LOST = (results_of_one_rank, gradients_of_all_ranks)
TESTS = (*LOST, *map(with_a_switch, LOST))


def main():
    subprocess.run(["modprobe", "atp"], check=True)
    rack("up", WORKERS, 1500)
    rack("job_add", BRISK, WORKERS, 4, "fragment", 248, "timeout",
         int(TIMEOUT * 1000))
    try:
        return run(TESTS)
    finally:
        rack("down")


if __name__ == "__main__":
    sys.exit(main())
