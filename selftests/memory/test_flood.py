#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Strangers, and hosts of the job that have gone mad, send whatever they like:
no table grows with it, and the job goes on.

What packets may fill is allocated with the job or the socket and never grows:

    ranks and their nonces    32, of each three nonces
    cells                     two windows
    raw slots                 eight
    window slots of a worker  one window

What waits is limited in bytes: for a socket that is in use (its two buffers),
for the PS to send it (16 MiB), for a listener that does not listen (its receive
buffer).  Jobs come by netlink alone.
"""
import os
import random
import socket
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../lib"))
from atptest import (ABORT, ACK, GET, J_TIMEOUT, LAST, LEAVE,  # noqa: E402
                     OVERFLOW, PING, PONG, RAW, RESEND, STATUS, T_JOIN, WELCOME,
                     Info, Netlink, Tickets, attr, control, data, internet_sum, join,
                     main, new_net, proc_protocols, pulled, pushed, same, sock,
                     sum_works, test, PORT, udp, wait_for)
from leaks import Leaks  # noqa: E402

JOB, VICTIM = 7, 8
PACKETS = 2000
WORKER, PS, STRANGER = "127.0.0.2", "127.0.0.1", "127.0.0.9"

# What loopback carries waits for the CPU that sent it. On one it comes in order,
# and nothing of a flood after those who leave.
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


class Sender:
    """Raw sockets, one for each address that packets come from."""
    def __init__(self):
        self.raw = {}
        for source in (WORKER, PS, STRANGER):
            s = socket.socket(socket.AF_INET, socket.SOCK_RAW,
                              socket.IPPROTO_UDP)
            s.bind((source, 0))
            # nobody reads what comes in by it
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 0)
            self.raw[source] = s

    def send(self, source, to, payload):
        length = 8 + len(payload)
        head = struct.pack("!HHHH", PORT, PORT, length, 0)
        total = internet_sum(socket.inet_aton(source) + socket.inet_aton(to) +
                             struct.pack("!BBH", 0, 17, length) + head +
                             payload)
        self.raw[source].sendto(head[:6] + struct.pack("!H", total or 0xffff) +
                                payload, (to, 0))


def flood(kinds, count=PACKETS):
    """@kinds: functions of a random generator: source, destination, packet"""
    sender = Sender()
    rnd = random.Random(1)
    nl = Netlink()
    sent = 0

    def some(n):
        nonlocal sent
        before = nl.counters()["in_packets"]
        for _ in range(n):
            sender.send(*rnd.choice(kinds)(rnd))
        sent += n
        # answers come in as well
        wait_for(lambda: nl.counters()["in_packets"] - before >= n, "received")

    some(count // 20)
    leaks = Leaks()
    some(count)
    leaks.none(count)


def rack():
    """One job is talked to, the other minds its own business."""
    new_net()
    nl = Netlink()
    nl.add(JOB, workers=[WORKER] * 4, more=attr(J_TIMEOUT, 600000))
    nl.add(VICTIM, more=attr(J_TIMEOUT, 600000))
    return nl, join(VICTIM)


def ghosts_leave():
    """Those who have joined as nobody, in the name of each rank"""
    tickets = Tickets(WORKER, JOB, workers=4)
    for rank in range(4):
        tickets.join(1000 + rank, bitmap=1 << rank)
        udp(WORKER, control(LEAVE, JOB, nonce=1000 + rank, workers=4,
                            bitmap=1 << rank))


def still_works(nl, others):
    sum_works(others)
    same(len(nl.dump(GET)), 2)
    socks = join(JOB, 4)
    sum_works(socks)
    for s in socks:
        s.close()


def word(rnd):
    return rnd.getrandbits(32)


@test
def jobs_that_do_not_exist():
    nl, others = rack()
    flood([lambda r: (WORKER, PS, control(T_JOIN, word(r) | 1 << 31,
                                          nonce=word(r), bitmap=1)),
           lambda r: (STRANGER, PS, data(word(r) | 1 << 31, [1, 2],
                                         epoch=word(r), seq=word(r))),
           lambda r: (PS, WORKER, control(WELCOME, word(r) | 1 << 31,
                                          nonce=word(r), epoch=word(r)))])
    same(nl.drops()["job"] >= PACKETS, True)
    still_works(nl, others)


@test
def joins_of_every_kind():
    """Each with another nonce: ranks wait, runs begin and are broken off."""
    nl, others = rack()
    tickets = Tickets(WORKER, JOB)
    flood([lambda r: (WORKER, PS, tickets.packet(word(r), 1 << r.randrange(4),
                                                 workers=4)),
           lambda r: (WORKER, PS, tickets.packet(word(r), 1 << r.randrange(4),
                                                 workers=9)),
           lambda r: (WORKER, PS, control(T_JOIN, JOB, nonce=word(r), workers=4,
                                          seq=word(r), epoch=word(r),
                                          bitmap=1 << r.randrange(4))),
           lambda r: (WORKER, PS, control(LEAVE, JOB, nonce=word(r),
                                          epoch=word(r), workers=4,
                                          bitmap=1 << r.randrange(4))),
           lambda r: (STRANGER, PS, control(T_JOIN, JOB, nonce=word(r),
                                            workers=4,
                                            bitmap=1 << r.randrange(32)))])
    same(nl.counters(JOB)["runs"] > 10, True)
    ghosts_leave()
    still_works(nl, others)


@test
def runs_that_never_were():
    """Each of these may be answered, none is remembered."""
    nl, others = rack()
    flood([lambda r: (WORKER, PS, data(JOB, [1, 2], epoch=word(r), seq=word(r),
                                       fanin=4, bitmap=r.randrange(1, 16),
                                       flags=LAST | RESEND)),
           lambda r: (WORKER, PS, control(PING, JOB, epoch=word(r), workers=4,
                                          nonce=word(r),
                                          bitmap=1 << r.randrange(4)))])
    still_works(nl, others)


@test
def every_place_in_the_window_and_the_raw_slots():
    """From a rank of the run, whose peers wait"""
    nl, others = rack()
    socks = join(JOB, 4)
    epoch = Info(socks[0]).epoch
    flood([lambda r: (WORKER, PS, data(JOB, [word(r) >> 1], epoch=epoch,
                                       seq=r.randrange(600), fanin=4, bitmap=8,
                                       flags=LAST | RESEND)),
           lambda r: (WORKER, PS, data(JOB, [word(r) >> 1], epoch=epoch,
                                       seq=r.randrange(600), fanin=4, bitmap=8,
                                       flags=LAST | RESEND | RAW))])
    same(nl.drops(JOB)["future"] > 0, True)
    for s in socks:
        s.close()
    still_works(nl, others)


@test
def answers_that_nobody_has_asked_for():
    """To worker sockets, one of which nobody reads"""
    nl, others = rack()
    socks = join(JOB, 4)
    epoch = Info(socks[0]).epoch
    # in flight, so that something waits for an answer
    socks[0].setblocking(False)
    pushed(socks[0], *range(100000))
    # a window ahead: none of it was ever sent
    flood([lambda r: (PS, WORKER, data(JOB, [1], epoch=epoch, fanin=4,
                                       seq=r.randrange(1 << 16, 1 << 17),
                                       flags=ACK | LAST)),
           lambda r: (PS, WORKER, data(JOB, [], epoch=epoch, fanin=4,
                                       seq=r.randrange(1 << 16, 1 << 17),
                                       flags=ACK | OVERFLOW)),
           lambda r: (PS, WORKER, control(STATUS, JOB, epoch=epoch, workers=4,
                                          seq=r.randrange(1 << 16))),
           lambda r: (PS, WORKER, control(PONG, JOB, epoch=epoch, workers=4,
                                          bitmap=1 << r.randrange(4))),
           lambda r: (PS, WORKER, control(ABORT, JOB, epoch=word(r) | 1 << 31,
                                          nonce=word(r), workers=4,
                                          bitmap=1 << r.randrange(4))),
           lambda r: (PS, WORKER, control(WELCOME, JOB, epoch=epoch, workers=4,
                                          nonce=word(r),
                                          bitmap=1 << r.randrange(4)))])
    for s in socks[1:]:
        pushed(s, *range(100000))
    socks[0].setblocking(True)
    for s in socks:
        same(pulled(s, 100000), [4 * k for k in range(100000)])
        s.close()
    still_works(nl, others)


@test
def listeners_that_do_not_listen():
    """Events are lost to them, as netlink says with ENOBUFS."""
    nl, others = rack()
    deaf = [Netlink(groups=True) for _ in range(8)]
    for listener in deaf:
        listener.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    tickets = Tickets(WORKER, JOB, workers=4)
    flood([lambda r: (WORKER, PS, tickets.packet(word(r),
                                                 1 << r.randrange(4)))])
    same(nl.counters(JOB)["runs"] > 50, True)
    ghosts_leave()
    still_works(nl, others)
    for listener in deaf:
        try:
            while listener.event(1):
                pass
            raise AssertionError("no event was lost")
        except OSError as e:
            same(e.errno, 105)


main()
