#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Ranks that push other chunks than the rest, or join otherwise: each rank gets
an error that names who it was, with a switch and without."""

import errno
import functools
import select
import socket
import subprocess
import sys
import time

from test_sockets import (ATP_DTYPE, DISAGREE, FLOAT32, INT32, LEFT, LONG,
                          MISMATCH, SOL_ATP, STATE_FAILED, Rank, Run,
                          all_to_all, ends, expect, fails)
from rack import atp, rack, run
from reports import ErrorMessage, Monitor, error_message, stall_names

LATE = 9

# jobs by their number of workers
JOBS = {4: 7, 3: 8, 2: 9}
HOSTS = max(JOBS)
# of a fragment
LANES = 62


def odd_one_out(odd, workers, lanes, other, dtype=INT32, before=0):
    """One pushes another chunk, as the first or the last; it is named."""
    for place in (0, workers - 1):
        with Run(workers, JOBS[workers]) as members:
            for _ in range(before):
                all_to_all(members)
            order = [rank for rank in members if rank.rank != odd]
            order.insert(place, members[odd])
            members[odd].sock.setsockopt(SOL_ATP, ATP_DTYPE, dtype)
            for rank in order:
                rank.push_if_it_goes(
                    *[1] * (other if rank.rank == odd else lanes)
                )
            for rank in members:
                ends(rank, errno.EPROTO, DISAGREE, 1 << odd)


def one_lane_less():
    odd_one_out(1, 4, 2, 1)


def one_lane_more_after_other_chunks():
    odd_one_out(3, 4, LANES, LANES + 1, before=3)


def fragments_less():
    odd_one_out(0, 4, 5 * LANES, 2 * LANES)


def fragments_more():
    odd_one_out(2, 3, 2 * LANES + 1, 7 * LANES)


def another_type():
    odd_one_out(1, 4, 100, 100, FLOAT32)


def of_two_nobody_can_say_who_is_wrong():
    with Run(2, JOBS[2]) as members:
        members[0].push(1, 2)
        members[1].push_if_it_goes(1)
        for rank in members:
            ends(rank, errno.EPROTO, DISAGREE, 0b11)


def after_it_a_new_run_works():
    for workers, job in JOBS.items():
        with Run(workers, job) as members:
            all_to_all(members)


def mask(ranks):
    return sum(1 << rank for rank in ranks)


def push_one_more(members, done):
    """All but those who are done; which fragment waits for these."""
    all_to_all(members)
    others = [rank for rank in members if rank.rank not in done]
    for rank in others:
        rank.push(1)
    stuck = stall_names(members[0].job, done,
                        [f"w{rank.rank}" for rank in others])
    # they may only be slow
    expect([rank.wait(select.POLLIN, 0) for rank in members], [0] * 4)
    return stuck


def told(rank, error, reason, ranks, stuck, done):
    """The end of a run, by every means that a rank has."""
    ends(rank, error, reason, ranks)
    missing = 0 if rank.rank in done else mask(done)
    expect(error_message(rank.sock),
           ErrorMessage(error, rank.job, rank.rank, reason, ranks, stuck,
                        missing))


def other_counts(done, go):
    """The first that goes ends it."""
    with Run(4, JOBS[4]) as members:
        stuck = push_one_more(members, done)
        go(members[done[0]])
        for rank in members:
            if rank.rank != done[0]:
                told(rank, errno.ECONNRESET, LEFT, 1 << done[0], stuck, done)


def leaves(rank):
    rank.close()


def pushes_no_more(rank):
    rank.sock.shutdown(socket.SHUT_WR)
    expect(bool(rank.wait(select.POLLIN)), True)
    expect(rank.sock.recv(4), b"")
    fails(errno.EPIPE, rank.sock.send, bytes(4))


def fewer_chunks_and_leaves():
    other_counts([2], leaves)


def fewer_chunks_and_shuts_down():
    other_counts([2], pushes_no_more)


def more_chunks_and_another_leaves():
    other_counts([0, 1, 3], leaves)


def more_chunks_and_another_shuts_down():
    other_counts([0, 1, 3], pushes_no_more)


def other_counts_and_nobody_leaves(done):
    job = JOBS[4]
    with Run(4, job) as members, Monitor("ps", job) as monitor:
        stuck = push_one_more(members, done)
        expect(atp("ps", "job", "set", job, "patience", "100ms"), (0, ""))
        for rank in members:
            told(rank, errno.ETIME, LATE, mask(done), stuck, done)
        event = monitor.event("ended", "late")
        expect((event["fragment"], event["ranks"]), (stuck, done))
        expect(atp("ps", "job", "set", job, "patience", "10min"), (0, ""))


def fewer_chunks_and_stays():
    other_counts_and_nobody_leaves([2])


def more_chunks_and_all_stay():
    other_counts_and_nobody_leaves([0, 1, 3])


def members_of(job):
    words = [job, "fragment", 4 * LANES, "ps", "10.0.0.254"]
    for rank in range(4):
        words += ["worker", f"10.0.0.{rank + 1}"]
    return words


def another_scale():
    """Who waits for the one that cannot come is told as well."""
    job = JOBS[4]
    others = [Rank(0, job), Rank(2, job), Rank(3, job)]
    expect(atp("w1", "job", "del", job), (0, ""))
    expect(atp("w1", "job", "add", *members_of(job), "scale", 1000), (0, ""))
    worker = Rank(1, job)
    try:
        for rank in others:
            rank.begin()
        end = time.monotonic() + LONG
        # told when the PS answers a repeated JOIN
        while any(rank.info()[2] != 0b1101 for rank in others):
            expect(time.monotonic() < end, True)
            time.sleep(0.05)
        worker.begin()
        for rank in [worker, *others]:
            expect(bool(rank.wait(select.POLLOUT)), True)
            expect(rank.error(), errno.EPROTO)
            expect(rank.info(), (STATE_FAILED, MISMATCH, 1 << 1))
    finally:
        for rank in [worker, *others]:
            rank.close()
        expect(atp("w1", "job", "del", job), (0, ""))
        expect(atp("w1", "job", "add", *members_of(job)), (0, ""))


KINDS = (
    one_lane_less,
    one_lane_more_after_other_chunks,
    fragments_less,
    fragments_more,
    another_type,
    of_two_nobody_can_say_who_is_wrong,
    after_it_a_new_run_works,
    fewer_chunks_and_leaves,
    fewer_chunks_and_shuts_down,
    fewer_chunks_and_stays,
    more_chunks_and_another_leaves,
    more_chunks_and_another_shuts_down,
    more_chunks_and_all_stay,
    another_scale,
    after_it_a_new_run_works,
)


def with_a_switch(test):
    @functools.wraps(test)
    def there():
        rack("switch_on")
        test()

    there.__name__ += "_with_a_switch"
    return there


def main():
    subprocess.run(["modprobe", "atp"], check=True)
    rack("up", HOSTS, 1500)
    for workers, job in JOBS.items():
        rack("job_add", job, workers, 4, "timeout", 30000, "fragment",
             4 * LANES)
    try:
        return run([*KINDS, *map(with_a_switch, KINDS)])
    finally:
        rack("down")


if __name__ == "__main__":
    sys.exit(main())
