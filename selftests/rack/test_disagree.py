#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Ranks that push other chunks than the rest, or join otherwise: each rank gets
an error that names who it was, with a switch and without; events say the same."""

import contextlib
import errno
import functools
import select
import socket
import subprocess
import sys

from test_sockets import (ATP_DTYPE, DISAGREE, FLOAT32, INT32, LEFT,
                          MISMATCH, SOL_ATP, STATE_FAILED, Rank, Run,
                          all_to_all, ends, expect, fails)
from atptest import wait_for
from rack import atp, rack, run
from reports import ErrorMessage, Monitor, error_message, stall_names

LATE = 9

# jobs by their number of workers
JOBS = {4: 7, 3: 8, 2: 9}
HOSTS = max(JOBS)
# of a fragment
LANES = 62


def mask(ranks):
    return sum(1 << rank for rank in ranks)


@contextlib.contextmanager
def monitors(job):
    """Of the PS and of the host of rank 0."""
    with Monitor("ps", job) as at_ps, Monitor("w0", job) as at_worker:
        yield at_ps, at_worker


def ended(at_ps, wrong):
    """The PS's event names them; where was it?"""
    event = at_ps.event("ended", "disagree")
    expect(event["ranks"], wrong)
    return event["fragment"]


def failed(at_worker, reason, ranks, fragment):
    """The event of rank 0."""
    event = at_worker.event("failed", reason)
    expect((event["rank"], event["ranks"], event["fragment"]),
           (0, ranks, fragment))


def named(members, wrong, fragments, at_ps, at_worker):
    """By every means; it is the last of the fragments in which they differ.

    Events and messages have the oldest that is not complete: one before may
    lie in the switch until it is asked for.
    """
    stuck = ended(at_ps, wrong)
    expect(stuck in fragments, True)
    for rank in members:
        ends(rank, errno.EPROTO, DISAGREE, mask(wrong))
        message = error_message(rank.sock)
        expect(message[:5], (errno.EPROTO, rank.job, rank.rank, DISAGREE,
                             mask(wrong)))
        # what is complete may not have come here yet
        expect(fragments[0] <= message.sequence <= stuck, True)
        # a rank that had to ask again was told for whom: never for itself
        others = mask(other.rank for other in members if other != rank)
        expect(message.missing & ~others, 0)
        if rank.rank == 0:
            failed(at_worker, "disagree", wrong, message.sequence)


def odd_one_out(odd, workers, lanes, other, dtype=INT32, before=0, alike=0):
    """One pushes another chunk, as the first or the last; it is named.

    before: fragments of other chunks, which are complete; alike: in which this
    chunk does not differ
    """
    fragments = range(before, before + alike + 1)
    with monitors(JOBS[workers]) as events:
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
                named(members, [odd], fragments, *events)


def one_lane_less():
    odd_one_out(1, 4, 2, 1)


def one_lane_more_after_other_chunks():
    odd_one_out(3, 4, LANES, LANES + 1, before=3)


def fragments_less():
    odd_one_out(0, 4, 5 * LANES, 2 * LANES, alike=1)


def fragments_more():
    odd_one_out(2, 3, 2 * LANES + 1, 7 * LANES, alike=2)


def another_type():
    odd_one_out(1, 4, 100, 100, FLOAT32)


def of_two_nobody_can_say_who_is_wrong():
    with monitors(JOBS[2]) as events, Run(2, JOBS[2]) as members:
        members[0].push(1, 2)
        members[1].push_if_it_goes(1)
        named(members, [0, 1], range(1), *events)


def others_wait(workers, late, wrong):
    """Until they know for whom; they are told that, and the late ones not."""
    with monitors(JOBS[workers]) as events, \
            Run(workers, JOBS[workers]) as members:
        all_to_all(members)
        others = [rank for rank in members if rank.rank not in late]
        for rank in others:
            rank.push(1)
        wait_for(lambda: all(rank.info()[2] == mask(late) for rank in others),
                 f"others that wait for {late}")
        for rank in late:
            members[rank].push_if_it_goes(1, 2)
        # they differ in the second fragment, behind one that is complete
        for rank in members:
            told(rank, errno.EPROTO, DISAGREE, mask(wrong), 1, late)
        expect(ended(events[0], wrong), 1)
        failed(events[1], "disagree", wrong, 1)


def only_some_push(pushed, wrong):
    """Who pushes nothing keeps nobody waiting, is not to blame, and is told."""
    with monitors(JOBS[4]) as events, Run(4, JOBS[4]) as members:
        for rank, lanes in pushed.items():
            members[rank].push_if_it_goes(*[1] * lanes)
        expect(ended(events[0], wrong), 0)
        failed(events[1], "disagree", wrong, 0)
        for rank in members:
            ends(rank, errno.EPROTO, DISAGREE, mask(wrong))


def two_of_four_differ_and_two_push_nothing():
    only_some_push({1: 2, 2: 1}, [1, 2])


def two_of_three_agree_and_one_pushes_nothing():
    only_some_push({0: 2, 1: 2, 3: 1}, [3])


def two_and_two():
    only_some_push({0: 2, 1: 1, 2: 2, 3: 1}, [0, 1, 2, 3])


def numbers_that_fit_no_integer():
    """They go as they are, and one chunk is shorter."""
    with monitors(JOBS[4]) as events:
        for odd in 0, 3:
            with Run(4, JOBS[4]) as members:
                for rank in members:
                    rank.sock.setsockopt(SOL_ATP, ATP_DTYPE, FLOAT32)
                    # of float32, 1e30 and one that is there for its length
                    rank.push_if_it_goes(*[0x7149f2ca, 0][:1 + (rank.rank != odd)])
                named(members, [odd], range(1), *events)


def others_wait_for_the_odd_one():
    others_wait(4, [2], [2])


def the_odd_one_waits_for_the_others():
    others_wait(4, [0, 1, 3], [2])


def one_of_two_waits_for_the_other():
    others_wait(2, [1], [0, 1])


def after_it_a_new_run_works():
    for workers, job in JOBS.items():
        with Run(workers, job) as members:
            all_to_all(members)


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


@contextlib.contextmanager
def one_with_another_scale(job):
    """Rank 1, and the others; the PS's patience with who does not come again"""
    ranks = [Rank(rank, job) for rank in range(4)]
    expect(atp("ps", "job", "set", job, "timeout", "10s"), (0, ""))
    expect(atp("w1", "job", "del", job), (0, ""))
    expect(atp("w1", "job", "add", *members_of(job), "scale", 1000), (0, ""))
    try:
        yield ranks[1], [ranks[0], *ranks[2:]]
    finally:
        for rank in ranks:
            rank.close()
        expect(atp("w1", "job", "del", job), (0, ""))
        expect(atp("w1", "job", "add", *members_of(job)), (0, ""))
        expect(atp("ps", "job", "set", job, "timeout", "30s"), (0, ""))


def refused(rank):
    expect(bool(rank.wait(select.POLLOUT)), True)
    expect(rank.error(), errno.EPROTO)
    expect(rank.info(), (STATE_FAILED, MISMATCH, 1 << 1))
    # there is no run, nor a fragment that waits
    expect(error_message(rank.sock),
           ErrorMessage(errno.EPROTO, rank.job, rank.rank, MISMATCH, 1 << 1, 0,
                        0))


def another_scale(before):
    """Who waits for the one that cannot come, or begins to, is told as well."""
    job = JOBS[4]
    with one_with_another_scale(job) as (odd, others), \
            Monitor("w0", job) as at_worker:
        waiting, late = others[:before], others[before:]
        for rank in waiting:
            rank.begin()
        # told when the PS answers a repeated JOIN
        here = mask(rank.rank for rank in waiting)
        wait_for(lambda: all(rank.info()[2] == here for rank in waiting),
                 "others that wait")
        odd.begin()
        for rank in [odd, *waiting]:
            refused(rank)
        # it may be mended: these wait for a while
        for rank in late:
            rank.begin()
        for rank in late:
            refused(rank)
        failed(at_worker, "mismatch", [1], 0)


def another_scale_first():
    another_scale(0)


def another_scale_in_the_middle():
    another_scale(1)


def another_scale_last():
    another_scale(3)


KINDS = (
    one_lane_less,
    one_lane_more_after_other_chunks,
    fragments_less,
    fragments_more,
    another_type,
    of_two_nobody_can_say_who_is_wrong,
    two_of_four_differ_and_two_push_nothing,
    two_of_three_agree_and_one_pushes_nothing,
    two_and_two,
    numbers_that_fit_no_integer,
    others_wait_for_the_odd_one,
    the_odd_one_waits_for_the_others,
    one_of_two_waits_for_the_other,
    after_it_a_new_run_works,
    fewer_chunks_and_leaves,
    fewer_chunks_and_shuts_down,
    fewer_chunks_and_stays,
    more_chunks_and_another_leaves,
    more_chunks_and_another_shuts_down,
    more_chunks_and_all_stay,
    another_scale_first,
    another_scale_in_the_middle,
    another_scale_last,
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
