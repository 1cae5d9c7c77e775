# SPDX-License-Identifier: GPL-2.0
"""What workers and a PS send through the switch, and tests one after another."""

import contextlib
import itertools
import os
import socket
import sys
import threading
import traceback

from rack import (ACK, MCAST, PORT, SWITCHED, counters, down, packet, receive,
                  shown, silent, switch, udp, up, within)

JOB = 7
WORKERS = ['10.9.0.%d' % i for i in (1, 2, 3, 4)]
PS = '10.9.0.5'
ADD = 'job add %d ps %s ' + ' '.join('worker ' + w for w in WORKERS)
numbers = itertools.count(1)
sockets = {}


def want(condition, text):
    if not condition:
        raise AssertionError(text)


def equal(got, wanted, text):
    if got != wanted:
        raise AssertionError('%s: %r, not %r' % (text, got, wanted))


def hosts(v6=False):
    """Sockets of four workers (0 to 3) and the PS (4), kept"""
    key = 'v6' if v6 else 'v4'
    if key not in sockets:
        form = 'fd09::%x' if v6 else '10.9.0.%d'
        sockets[key] = [udp(i, form % i) for i in range(1, 6)]
    return sockets[key]


def values(rank, lanes):
    return [(rank + 1) * 1000003 * (1 if i & 1 else -1) + i
            for i in range(lanes)]


def total(ranks, lanes):
    return [sum(column) for column in
            zip(*[values(rank, lanes) for rank in ranks])]


@contextlib.contextmanager
def one_cpu():
    """The program runs on the CPU that sends.  On two of them a fragment may meet
    an aggregator whose lock is held by a CPU that an emulator has stopped, and go
    on alone."""
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cpus)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cpus)


def push(socks, seq, ranks, lanes, to, flags=0, job=JOB):
    with one_cpu():
        for rank in ranks:
            socks[rank].sendto(packet(flags, job, seq, 1 << rank,
                                      values(rank, lanes)), (to, PORT))


def answer(socks, seq, lanes, first=WORKERS[0], job=JOB):
    """A parameter packet for all, which frees the aggregator"""
    socks[4].sendto(packet(ACK | MCAST, job, seq, 0, lanes), (first, PORT))
    for rank in range(4):
        got = receive(socks[rank])
        equal(got.lanes, lanes, 'parameters of rank %d' % rank)
        equal(got.seq, seq, 'sequence number')
        want(not got.flags & MCAST, 'MCAST is still set')


def nothing_left():
    """What a test leaves, another one would meet"""
    late = 0
    for sock in itertools.chain(*sockets.values()):
        while not silent(sock, 0.01):
            late += 1
    equal(late, 0, 'packets that nobody asked for')
    if not switch('show', check=False).returncode:
        now = shown()
        equal(now['occupied'], 0, 'aggregators left occupied, jobs: %s' % (
            now['jobs']))


def round_trip(socks, to, first, lanes, job=JOB):
    """A fragment up and its parameter packet down"""
    seq = next(numbers)
    push(socks, seq, range(4), lanes, to, job=job)
    got = receive(socks[4])
    equal(got.lanes, total(range(4), lanes), 'sum')
    equal(got.bitmap, 15, 'bitmap')
    want(got.flags & SWITCHED, 'SWITCHED is not set')
    equal(got.cap, 64, 'cwndCap')
    want(silent(socks[4], 0.02), 'more than one packet for the PS')
    answer(socks, seq, got.lanes, first, job)
    for rank in range(4):
        want(silent(socks[rank], 0.02), 'two copies for rank %d' % rank)
    return got


def stream(socks, lanes=62, window=16):
    """Fragments up and their parameter packets down, one behind the other, each
    sent once.  What meets a lock goes on alone."""
    seqs = list(itertools.islice(numbers, window))
    for seq in seqs:
        push(socks, seq, range(4), lanes, PS)
    ranks = dict.fromkeys(seqs, 0)
    sums = {seq: [0] * lanes for seq in seqs}
    while set(ranks.values()) != {15}:
        try:
            got = receive(socks[4])
        except socket.timeout as err:
            raise AssertionError('ranks by fragment: %s, counters: %s' % (
                ranks, {name: n for name, n in counters(JOB).items()
                        if n})) from err
        want(not ranks[got.seq] & got.bitmap, 'a fragment came twice')
        ranks[got.seq] |= got.bitmap
        sums[got.seq] = [a + b for a, b in zip(sums[got.seq], got.lanes)]
    for seq in seqs:
        equal(sums[seq], total(range(4), lanes), 'sum')
        socks[4].sendto(packet(ACK | MCAST, JOB, seq, 0, sums[seq]),
                        (WORKERS[0], PORT))
    for rank in range(4):
        equal(sorted(receive(socks[rank]).seq for _ in seqs), seqs,
              'parameters of rank %d' % rank)


def loses_nothing(*commands, times=5):
    """Fragments without any resend while something is done, time and again:
    words for a shell, or a function"""
    running = True
    failed = []

    def traffic():
        try:
            while running:
                stream(hosts())
        except (AssertionError, OSError) as err:
            failed.append(err)

    def goes_on():
        """So that something is on its way whenever a command begins"""
        before = counters(JOB)['completed']
        while thread.is_alive() and counters(JOB)['completed'] == before:
            pass

    thread = threading.Thread(target=traffic)
    thread.start()
    before = counters(JOB)['completed']
    try:
        for command in commands * times:
            goes_on()
            if callable(command):
                command()
            else:
                within('s', command)
        goes_on()
    finally:
        running = False
        thread.join()
    want(not failed, str(failed))
    sums = counters(JOB)['completed'] - before
    print('# %d sums' % sums)
    want(sums > times * len(commands), 'no traffic')


def run(tests, vital=None):
    """Tests by name; without what is @vital the rest means nothing"""
    print('TAP version 13\n1..%d' % len(tests))
    failed = 0
    try:
        up()
        for number, (name, test) in enumerate(tests, 1):
            try:
                test()
                nothing_left()
                print('ok %d %s' % (number, name))
            except Exception:       # pylint: disable=broad-except
                failed += 1
                for line in traceback.format_exc().splitlines():
                    print('# ' + line)
                print('not ok %d %s' % (number, name))
                if test is vital:
                    print('Bail out! The rest needs it')
                    break
            sys.stdout.flush()
    finally:
        down()
    return 1 if failed else 0
