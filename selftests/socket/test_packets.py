#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Packets that nobody has sent: each is counted under its reason, and none
changes a sum.

The PS is 127.0.0.1, every rank is 127.0.0.2, so that this script can speak as a
worker, as the PS, and as a stranger (127.0.0.9).
"""
import errno
import os
import random
import socket
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../lib"))
from atptest import (  # noqa: E402
    ABORT, ACK, COLLISION, DATA, ECN, EDGE, FAILED, FLOAT32, INT32, JOINED,
    J_TIMEOUT, J_WAITING, J_WINDOW, LAST, LEAVE, MCAST, OVERFLOW, PING, PONG, PORT, RAW,
    RESEND, STATUS, SUM, SWITCHED, T_JOIN, WELCOME, Info, Netlink, Tickets, attr,
    control, data, header, join, main, new_net, pulled, pushed, refused, same,
    sock, start_join, sum_works, test, u32, udp, wait_for,
)

JOB = 7
WORKER, PS, STRANGER = "127.0.0.2", "127.0.0.1", "127.0.0.9"


class Rack:
    """A job whose ranks have joined, and its counters."""
    def __init__(self, ranks=2, more=b""):
        new_net()
        self.nl = Netlink()
        # a machine that is slow is not dead
        self.nl.add(JOB, workers=[WORKER] * ranks,
                    more=more + attr(J_TIMEOUT, 600000))
        self.socks = join(JOB, ranks)
        self.epoch = Info(self.socks[0]).epoch
        sum_works(self.socks)

    def settle(self):
        """Drops of the namespace, when no more come."""
        before = self.nl.drops()
        while True:
            after = self.nl.drops()
            if after == before:
                return after
            before = after

    def inject(self, source, packet, to=PS, job_too=True, summed=True,
               **expect):
        """Exactly these drops, in the namespace and in the job."""
        def rise(now, then):
            return {k: v - then[k] for k, v in now.items() if v != then[k]}

        def resends():
            return self.nl.counters(JOB)["resends"]

        # A rank that waits for others sends again, and the answer is given to
        # all ranks of the host, for some of which it is of no use: that has to
        # be told from what we caused, by trying again.
        for _ in range(100):
            sent, ns, job = resends(), self.settle(), self.nl.drops(JOB)
            udp(source, packet, to, summed)
            wait_for(lambda n=ns: all(self.nl.drops()[k] - n[k] >= v
                                      for k, v in expect.items()),
                     f"drops {expect}")
            ns, job = rise(self.settle(), ns), rise(self.nl.drops(JOB), job)
            if resends() == sent and not set(ns) - set(expect):
                break
        same(ns, expect, "in the namespace")
        same(job, expect if job_too else {}, "in the job")

    def during(self, inject):
        """Before, in the middle of, and after a chunk."""
        sum_works(self.socks)
        inject()
        pushed(self.socks[0], *range(100))
        wait_for(lambda: Info(self.socks[0]).sent, "sent")
        inject()
        for s in self.socks[1:]:
            pushed(s, *range(100))
        for s in self.socks:
            same(pulled(s, 100), [len(self.socks) * k for k in range(100)])
        inject()
        sum_works(self.socks)
        for s in self.socks:
            same(Info(s).state, JOINED)


LANES = [1, 2, 3, 4]


def malformed(packets, reason):
    """Before a job is known, from anybody to anybody."""
    r = Rack()

    def inject():
        for packet in packets:
            for source, to in ((WORKER, PS), (PS, WORKER), (STRANGER, PS)):
                r.inject(source, packet, to, job_too=False, **{reason: 1})
    r.during(inject)


@test
def short():
    whole = data(JOB, LANES)
    malformed([b"", whole[:1], whole[:35]], "short")


@test
def version():
    malformed([data(JOB, LANES, version=v) for v in (0, 2, 255)], "version")


@test
def kind():
    malformed([header(t, JOB) + bytes(32) for t in (0, 9, 255)], "type")


@test
def flags():
    malformed([
        data(JOB, LANES, flags=f) for f in (
            1 << 10, 1 << 15, 0xffff, EDGE, MCAST, RAW | OVERFLOW,
            ACK | RESEND, ACK | EDGE, ACK | RAW, ACK | RAW | OVERFLOW)
    ] + [
        data(JOB, LANES, flags=ACK | OVERFLOW, dtype=FLOAT32)
    ] + [control(t, JOB, flags=f) for t in (T_JOIN, PING, ABORT)
         for f in (1, LAST, ACK)], "flags")


@test
def length():
    d = data(JOB, LANES)
    malformed([d + bytes(1), d[:-1], d + bytes(8), d[:-8], d[:36],
               data(JOB, [1, 2, 3])[:-4],
               data(JOB, [], flags=ACK | OVERFLOW) + bytes(8),
               control(PING, JOB)[:-1], control(PING, JOB) + bytes(4),
               control(T_JOIN, JOB)[:36], d + bytes(4000)], "length")


@test
def no_checksum():
    r = Rack()
    r.during(lambda: [
        r.inject(WORKER, packet, job_too=False, summed=False, checksum=1)
        for packet in (data(JOB, LANES, epoch=r.epoch), b"",
                       control(PING, JOB))])


def in_csum_errors():
    with open("/proc/net/snmp", encoding="ascii") as f:
        names, values = [line.split() for line in f if line.startswith("Udp:")]
    return int(dict(zip(names, values))["InCsumErrors"])


@test
def wrong_checksum():
    """UDP itself finds it: none of our counters moves."""
    r = Rack()

    def inject():
        before, drops = in_csum_errors(), r.settle()
        udp(WORKER, data(JOB, LANES, epoch=r.epoch), checksum=0xbad)
        wait_for(lambda: in_csum_errors() > before, "InCsumErrors")
        same(in_csum_errors(), before + 1)
        now = r.settle()
        for k in ("checksum", "short", "old", "epoch", "stranger"):
            same(now[k], drops[k], k)
    r.during(inject)


@test
def dtype():
    malformed([data(JOB, LANES, dtype=d) for d in (0, 3, 255)] +
              [control(PING, JOB, dtype=INT32)], "dtype")


@test
def fanin():
    malformed([data(JOB, LANES, fanin=f) for f in (0, 33, 255)] +
              [data(JOB, LANES, fanin1=1), data(JOB, LANES, tree=1),
               control(PING, JOB, fanin1=1), control(PING, JOB, tree=255)],
              "fanin")


@test
def fanin_of_another_job():
    r = Rack()
    r.during(lambda: r.inject(WORKER, data(JOB, LANES, epoch=r.epoch, fanin=3),
                              fanin=1))


@test
def bitmap():
    malformed([data(JOB, LANES, bitmap=b) for b in (0, 4, 1 << 31)] +
              [data(JOB, LANES, bitmap1=1), control(PING, JOB, bitmap1=1),
               data(JOB, LANES, flags=RAW, bitmap=3),
               data(JOB, LANES, flags=RAW | SWITCHED, bitmap=3),
               # who is no switch adds for nobody
               data(JOB, LANES, bitmap=3)], "bitmap")


@test
def bitmap_of_control():
    r = Rack()
    r.during(lambda: [
        r.inject(WORKER, control(t, JOB, epoch=r.epoch, bitmap=b), bitmap=1)
        for t in (PING, LEAVE, T_JOIN) for b in (0, 3, 4, 1 << 31)])


@test
def elements():
    malformed([data(JOB, [0] * 851), header(DATA, JOB, dtype=INT32),
               header(DATA, JOB, flags=ACK, dtype=INT32),
               header(PING, JOB, elements=1) + bytes(32)], "elements")


@test
def elements_of_the_job():
    r = Rack()
    r.during(lambda: [
        r.inject(WORKER, data(JOB, [0] * 351, epoch=r.epoch), elements=1),
        r.inject(WORKER, data(JOB, LANES, epoch=r.epoch, flags=0), elements=1)])


@test
def job():
    r = Rack()

    def inject():
        for source, to, packet in (
                (WORKER, PS, data(8, LANES)), (PS, WORKER, control(PONG, 8)),
                (WORKER, PS, control(T_JOIN, 0xffffffff, nonce=5))):
            r.inject(source, packet, to, job_too=False, job=1)
    r.during(inject)


@test
def epoch():
    r = Rack()

    def inject():
        for e in (r.epoch + 1, r.epoch - 1):
            e &= 0xffffffff
            # The PS tells the sender, for which that is news of another run
            r.inject(WORKER, data(JOB, LANES, epoch=e), epoch=2)
            r.inject(WORKER, control(PING, JOB, epoch=e), epoch=2)
            # to both ranks of the host; control packets to one
            r.inject(PS, data(JOB, LANES, epoch=e, flags=ACK | LAST), WORKER,
                     epoch=2)
            r.inject(PS, control(ABORT, JOB, epoch=e, reason=1), WORKER, epoch=1)
            r.inject(PS, control(PONG, JOB, epoch=e), WORKER, epoch=1)
    r.during(inject)


@test
def stranger():
    r = Rack()

    def inject():
        r.inject(STRANGER, data(JOB, LANES, epoch=r.epoch), stranger=1)
        r.inject(STRANGER, control(LEAVE, JOB), stranger=1)
        r.inject(STRANGER, control(T_JOIN, JOB, nonce=9), stranger=1)
        r.inject(STRANGER, control(PING, JOB, epoch=r.epoch), stranger=1)
        for packet in (data(JOB, [99] * 4, epoch=r.epoch, flags=ACK | LAST),
                       control(ABORT, JOB, epoch=r.epoch, reason=1),
                       control(STATUS, JOB, epoch=r.epoch)):
            r.inject(STRANGER, packet, WORKER, stranger=1)
            r.inject(WORKER, packet, PS, stranger=1)
    r.during(inject)


@test
def port_of_a_user():
    """Who owns no port 4797 is nobody, whatever his address."""
    r = Rack()

    def inject():
        for source, packet, to in (
                (WORKER, data(JOB, [9] * 4, epoch=r.epoch, bitmap=2), PS),
                (WORKER, control(LEAVE, JOB), PS),
                (WORKER, control(T_JOIN, JOB, nonce=9), PS),
                (PS, control(ABORT, JOB, epoch=r.epoch, reason=1), WORKER)):
            before = r.nl.drops(JOB)["stranger"]
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
                s.bind((source, 0))
                s.sendto(packet, (to, PORT))
            wait_for(lambda n=before: r.nl.drops(JOB)["stranger"] == n + 1,
                     "dropped")
    r.during(inject)


@test
def stranger_speaks_for_another_rank():
    """Ranks that have addresses of their own"""
    new_net()
    nl = Netlink()
    nl.add(JOB, workers=["127.0.0.2", "127.0.0.3"])
    socks = join(JOB)
    e = Info(socks[0]).epoch
    for packet in (data(JOB, LANES, epoch=e, bitmap=2),
                   control(LEAVE, JOB, bitmap=2)):
        before = nl.drops()["stranger"]
        udp("127.0.0.2", packet)
        wait_for(lambda n=before: nl.drops()["stranger"] == n + 1, "dropped")
    sum_works(socks)


@test
def old_and_future():
    r = Rack(more=attr(J_WINDOW, 4))

    def inject():
        frontier = Info(r.socks[0]).una
        for k in (5, 100, 1 << 30):
            r.inject(WORKER, data(JOB, [5] * 4, epoch=r.epoch,
                                  seq=(frontier - k) & 0xffffffff), old=1)
        for k in (4, 5, 8, 1 << 30):
            r.inject(WORKER, data(JOB, [5] * 4, epoch=r.epoch,
                                  seq=frontier + k), future=1)
    r.during(inject)


@test
def duplicate_at_the_ps():
    r = Rack()

    def inject():
        if Info(r.socks[0]).una == Info(r.socks[0]).nxt:
            return
        # another value from who is in it already
        r.inject(WORKER, data(JOB, [9] * 100, epoch=r.epoch,
                              seq=Info(r.socks[0]).una), duplicate=1)
    r.during(inject)
    # and of a fragment that is complete; its length is right
    r.inject(WORKER, data(JOB, [9] * 100, epoch=r.epoch, bitmap=3,
                          flags=SUM, seq=Info(r.socks[0]).una - 4), duplicate=1)
    sum_works(r.socks)


@test
def overlap():
    r = Rack(3)
    pushed(r.socks[0], *range(50))
    pushed(r.socks[1], *range(50))
    wait_for(lambda: u32(r.nl.job(JOB)[J_WAITING]) == 4, "two are there")
    # a sum with one that is known and one that is not
    r.inject(WORKER, data(JOB, [9] * 50, epoch=r.epoch, bitmap=6, fanin=3,
                          flags=SUM, seq=Info(r.socks[0]).una), overlap=1)
    pushed(r.socks[2], *range(50))
    for s in r.socks:
        same(pulled(s, 50), [3 * k for k in range(50)])
    sum_works(r.socks)


@test
def nonce():
    r = Rack()

    def inject():
        r.inject(WORKER, control(LEAVE, JOB, nonce=1), nonce=1)
        r.inject(WORKER, control(PING, JOB, epoch=r.epoch, nonce=1), nonce=1)
        r.inject(WORKER, control(T_JOIN, JOB, nonce=0), nonce=1)
    r.during(inject)


@test
def nonce_of_another_join():
    new_net()
    nl = Netlink()
    nl.add(JOB)
    s = sock()
    start_join(s, JOB, 0)
    for t in (WELCOME, ABORT, PONG):
        before = nl.drops()["nonce"]
        udp(PS, control(t, JOB, nonce=0, reason=1), WORKER)
        wait_for(lambda n=before: nl.drops()["nonce"] == n + 1, "dropped")
    same(Info(s).state, 2)
    other = sock()
    start_join(other, JOB, 1)
    wait_for(lambda: Info(s).state == JOINED, "joined")
    for x in (s, other):
        x.setblocking(True)
    sum_works([s, other])


@test
def ticket():
    """A JOIN of long ago, or of one that has not heard what to repeat"""
    r = Rack()

    def inject():
        for e, seq in ((r.epoch, 0x7fffffff), (r.epoch - 1, 2), (0, 1)):
            # the rank is told what to repeat, and has not asked
            r.inject(WORKER, control(T_JOIN, JOB, nonce=9, seq=seq,
                                     epoch=e & 0xffffffff), nonce=2)
        r.inject(WORKER, control(T_JOIN, JOB, nonce=9), nonce=1)
    r.during(inject)


@test
def mismatch():
    """A JOIN of a worker that is configured otherwise; nobody is joined, so the
    answer finds nobody."""
    new_net()
    nl = Netlink()
    nl.add(JOB)
    tickets = Tickets(WORKER, JOB)
    for n, fields in enumerate(({"workers": 3}, {"fragment": 64},
                                {"window": 4}, {"scale": 1}), 1):
        tickets.join(77, **fields)
        # what it must repeat, and then that it is refused
        wait_for(lambda n=n: nl.drops()["mismatch"] == n and
                 nl.drops()["state"] == 2 * n, "dropped")
    same(sum(nl.drops().values()), 12)
    sum_works(join(JOB))


@test
def state():
    r = Rack()

    def inject():
        # a worker's packet where the PS is not
        r.inject(WORKER, data(JOB, LANES, epoch=r.epoch), WORKER, state=1)
        r.inject(WORKER, control(T_JOIN, JOB, nonce=8), STRANGER, state=1)
    r.during(inject)
    # the PS's packet for a rank that has no socket
    r.socks.pop().close()
    r.inject(PS, control(PONG, JOB, bitmap=2), WORKER, state=1)


@test
def state_while_joining():
    new_net()
    nl = Netlink()
    nl.add(JOB)
    s = sock()
    start_join(s, JOB, 0)
    for n, packet in enumerate((data(JOB, LANES, flags=ACK | LAST),
                                control(STATUS, JOB)), 1):
        udp(PS, packet, WORKER)
        wait_for(lambda n=n: nl.drops()["state"] == n, "dropped")


@test
def unsent():
    r = Rack()

    def inject():
        nxt = Info(r.socks[1]).nxt
        for seq in (nxt + 200, nxt + (1 << 30)):
            r.inject(PS, data(JOB, [9] * 4, epoch=r.epoch, seq=seq,
                              flags=ACK | LAST), WORKER, unsent=2)
            r.inject(PS, control(STATUS, JOB, epoch=r.epoch, seq=seq), WORKER,
                     unsent=2)
    r.during(inject)


@test
def duplicate_at_the_worker():
    r = Rack()
    r.during(lambda: r.inject(
        PS, data(JOB, [9] * 100, epoch=r.epoch, seq=0, flags=ACK | LAST), WORKER,
        duplicate=2))
    same(min(Info(s).duplicates for s in r.socks) >= 3, True)


@test
def old_status():
    r = Rack()
    r.during(lambda: [
        r.inject(PS, control(STATUS, JOB, epoch=r.epoch, seq=0), WORKER, old=2),
        r.inject(PS, control(STATUS, JOB, epoch=r.epoch, seq=0, bitmap=4),
                 WORKER, bitmap=2)])


@test
def one_status_per_host():
    """To those who are missed, as many as there are at an address."""
    r = Rack(8)
    pushed(r.socks[0], *range(10))
    wait_for(lambda: u32(r.nl.job(JOB)[J_WAITING]) == 0xfe, "one is there")

    def so_far():
        counters = r.nl.counters(JOB)
        return counters["out_packets"], counters["resends"]

    # the rank asks, too, and others say that they are there
    for _ in range(100):
        out, asked = so_far()
        udp(WORKER, data(JOB, list(range(10)), epoch=r.epoch, fanin=8,
                         seq=Info(r.socks[0]).una, flags=LAST | RESEND))
        wait_for(lambda n=asked: so_far()[1] > n, "asked")
        r.settle()
        after, n = so_far()
        if (after - out, n - asked) == (1, 1):
            break
    same((after - out, n - asked), (1, 1))
    for s in r.socks[1:]:
        pushed(s, *range(10))
    for s in r.socks:
        same(pulled(s, 10), [8 * k for k in range(10)])


@test
def answers_that_do_not_fit_the_fragment():
    """To a rank that waits: other type, other length, other fan-in"""
    r = Rack()
    pushed(r.socks[0], *range(10))
    pushed(r.socks[0], *range(10))
    i = Info(r.socks[0])
    same(i.nxt - i.una, 2)
    # one socket waits for it, the other has not sent it
    for fields, reason in (({"dtype": FLOAT32}, "dtype"),
                           ({"fanin": 3}, "fanin")):
        e = {reason: 2} if reason == "fanin" else {reason: 1, "unsent": 1}
        r.inject(PS, data(JOB, [9] * 10, **{
            "epoch": r.epoch, "seq": i.una, "flags": ACK | LAST, **fields}),
            WORKER, **e)
    r.inject(PS, data(JOB, [9] * 9, epoch=r.epoch, seq=i.una,
                      flags=ACK | LAST), WORKER, elements=1, unsent=1)
    for _ in range(2):
        pushed(r.socks[1], *range(10))
    for s in r.socks:
        for _ in range(2):
            same(pulled(s, 10), [2 * k for k in range(10)])
    sum_works(r.socks)


@test
def abort_without_reason():
    r = Rack()
    r.during(lambda: r.inject(PS, control(ABORT, JOB, epoch=r.epoch), WORKER,
                              flags=1))


@test
def restarted_worker():
    """Who needs a rank that joined with another nonce is told."""
    r = Rack()
    pushed(r.socks[0], 1)
    Tickets(WORKER, JOB).join(4711, bitmap=2)
    for s in r.socks[:1]:
        wait_for(lambda s=s: Info(s).state == FAILED, "failed")
        same((Info(s).reason, Info(s).ranks), (3, 2))


@test
def rawfull():
    """No room for a ninth fragment on the overflow path, and none is needed"""
    r = Rack()
    big = 0x7fffffff
    for s in r.socks:
        for k in range(40):
            pushed(s, k, big if k % 2 else k)
    for s in r.socks:
        for k in range(40):
            if k % 2:
                refused(errno.EOVERFLOW, s.recv, 8)
            else:
                same(pulled(s, 2), [2 * k, 2 * k])
    sum_works(r.socks)


@test
def flood():
    """Random packets from everybody: nothing changes but counters."""
    rng = random.Random(1)
    r = Rack()
    for n in range(3000):
        source = rng.choice((WORKER, PS, STRANGER))
        packet = bytearray(data(rng.choice((JOB, 8)), LANES * rng.randrange(99),
                                epoch=rng.getrandbits(32),
                                seq=rng.getrandbits(32)))
        for _ in range(rng.randrange(4)):
            packet[rng.randrange(16)] = rng.getrandbits(8)
        # not of this run, whatever the rest says
        if packet[8:12] == struct.pack("!I", r.epoch):
            continue
        # a LEAVE or JOIN has no epoch
        if packet[1] in (T_JOIN, LEAVE):
            continue
        udp(source, bytes(packet[:rng.randrange(len(packet) + 1)]),
            rng.choice((PS, WORKER)))
        if n % 300 == 0:
            sum_works(r.socks)
    sum_works(r.socks)
    same([Info(s).state for s in r.socks], [JOINED] * 2)


@test
def ecn_is_seen():
    """A mark in the IP header of a result, which is a duplicate, is no news; one
    in the header of a fragment reaches all ranks."""
    r = Rack()
    pushed(r.socks[0], *range(10))
    seq = Info(r.socks[0]).una
    before = r.nl.counters(JOB)["ecn"]
    udp(WORKER, data(JOB, list(range(10)), epoch=r.epoch, seq=seq, bitmap=2,
                     flags=LAST | ECN))
    same(pulled(r.socks[0], 10), [2 * k for k in range(10)])
    same(r.nl.counters(JOB)["ecn"], before + 1)
    same(Info(r.socks[0]).ecn, 1)
    same(r.nl.counters(JOB)["worker_ecn"], 1)


@test
def what_is_no_drop_is_counted_too():
    """A peer that is late, a collision, a sum that goes by a switch, one that is
    asked for again"""
    r = Rack()

    def rise(name):
        return r.nl.counters(JOB)[name] - before[name]

    before = r.nl.counters(JOB)
    pushed(r.socks[0], *range(10))
    wait_for(lambda: rise("spurious_timeouts"), "a timeout for a late peer")
    seq = Info(r.socks[0]).una

    def from_rank_1(flags):
        udp(WORKER, data(JOB, list(range(10)), epoch=r.epoch, seq=seq,
                         bitmap=2, flags=LAST | flags))
    same((rise("collisions"), rise("out_multicast"), rise("cached")), (0, 0, 0))
    from_rank_1(COLLISION | SWITCHED)
    same(pulled(r.socks[0], 10), [2 * k for k in range(10)])
    same((rise("collisions"), rise("out_multicast")), (1, 1))
    cached = rise("cached")
    from_rank_1(RESEND)
    wait_for(lambda: rise("cached") > cached, "an answer once more")


main()
