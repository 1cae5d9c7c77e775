#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Bursts that come in as one buffer: plain ones are taken whole, all others are
cut by UDP, and each packet is counted as if it had come alone.

Two namespaces are joined by a cable.  "Here" is the module's, the other one has
no job: there this script owns port 4797 and plays a worker, the PS, or a
stranger.
"""
import collections
import concurrent.futures
import contextlib
import os
import socket
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../lib"))
from atptest import (  # noqa: E402
    ACK, CLONE_NEWNET, DATA, JOINED, J_FRAGMENT, J_TIMEOUT, LAST, LIMIT,
    PING, PONG, PORT, T_JOIN, WELCOME, Info, Netlink, attr, control, data, join,
    libc, main, new_net, pulled, pushed, run, same, sock, start_join, sum_works,
    test, wait_for,
)

JOB, OTHER, UNKNOWN = 7, 8, 9
NONCE, EPOCH = 4711, 77
SOL_UDP, UDP_SEGMENT = 17, 103
ECT0, CE = 2, 3
# The PS if it is here, a rank that is; the other end; somebody there who is
# nobody
PS, NEAR, FAR, STRANGER = 1, 2, 3, 9

Packet = collections.namedtuple(
    "Packet", "version kind flags job epoch seq bitmap bitmap1 fanin fanin1 "
    "dtype tree index elements cap payload")


def address(family, number):
    return f"10.9.0.{number}" if family == 4 else f"fd09::{number}"


@contextlib.contextmanager
def inside(space):
    """What is opened in this block belongs to that namespace."""
    with open("/proc/self/ns/net", "rb") as here:
        same(libc.setns(space, CLONE_NEWNET), 0, "setns")
        try:
            yield
        finally:
            same(libc.setns(here.fileno(), CLONE_NEWNET), 0, "setns")


def by_another(call, *args):
    """By a new thread: the kernel keeps a page for each, in which what it sends
    is put behind what it has sent before.  In a new one there is room for all.
    """
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(call, *args).result()


# Rules of the host: nf_tables' messages, attributes and registers
NEW_TABLE, DEL_TABLE, NEW_CHAIN, NEW_RULE = (10 << 8 | n for n in (0, 2, 3, 6))
LOCAL_IN, DROP, ACCEPT = 1, 0, 1
INVALID, KNOWN = 1, 2 | 4


def be(*values):
    """Attributes 1, 2 and so on: numbers, text, or what is in a nest"""
    found = b""
    for n, v in enumerate(values, 1):
        if isinstance(v, int):
            v = struct.pack("!i", v)
        elif isinstance(v, str):
            v = v.encode() + b"\0"
        elif isinstance(v, tuple):
            n, v = n | 0x8000, be(*v)
        if v is not None:
            found += attr(n, v)
    return found


def bytes_are(base, at, value):
    """Of the network header (1) or of the one behind it (2)"""
    return (("payload", (1, base, at, len(value))),
            ("cmp", (1, 0, (value,))))


def state_is(bits):
    return (("ct", (1, 0)),
            ("bitwise", (1, 1, 4, (struct.pack("I", bits),), (bytes(4),))),
            ("cmp", (1, 1, (bytes(4),))))


def verdict(code):
    return (("immediate", (0, (None, (code,)))),)


def rules(*changes):
    """One batch of (message, attributes) for IPv4"""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12) as s:
        s.bind((0, 0))
        packet = b""
        for n, (kind, body) in enumerate(
                ((16, b""), *changes, (17, b"")), 1):
            family, subsystem = (0, 10) if kind in (16, 17) else (2, 0)
            # create, append; it is only the last that is answered
            flags = 0xc01 | (4 if n == len(changes) + 1 else 0)
            body = struct.pack("!BBH", family, 0, subsystem) + body
            packet += struct.pack("IHHII", 16 + len(body), kind, flags, n,
                                  0) + body
        s.send(packet)
        answer = s.recv(65536)
        same(struct.unpack_from("i", answer, 16)[0], 0, "rules")


def filter_input(*expressions):
    """A chain for what comes in; each rule is a tuple of expressions."""
    rules((NEW_TABLE, be("t")),
          (NEW_CHAIN, be("t", None, "c", (LOCAL_IN, 0), ACCEPT, None,
                         "filter")),
          *[(NEW_RULE, be("t", "c", None, b"".join(
              attr(1 | 0x8000, be(*e)) for e in sum(rule, ()))))
            for rule in expressions])


def tracked(family, *ends):
    """The line of a connection between addresses, as the one who began it"""
    src, dst = (address(family, e) for e in ends)
    with open("/proc/net/nf_conntrack", encoding="ascii") as f:
        return "".join(line for line in f
                       if 0 <= line.find(f"src={src} dst={dst} ") <
                       line.rfind("src="))


class Hand:
    """Who is at the other end of the cable, played by this script"""
    def __init__(self, cable, number, port=PORT):
        family = socket.AF_INET if cable.family == 4 else socket.AF_INET6
        self.family = cable.family
        with inside(cable.far):
            self.s = socket.socket(family, socket.SOCK_DGRAM)
        self.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self.s.settimeout(LIMIT)
        self.s.bind((address(self.family, number), port))
        self.mark(ECT0)

    def mark(self, tos):
        if self.family == 4:
            self.s.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
        else:
            self.s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, tos)

    def send(self, packet, to):
        self.s.sendto(packet, (address(self.family, to), PORT))

    def burst(self, packets, to, pieces=()):
        """One buffer; pieces: where it goes on in another page"""
        size = len(packets[0])
        same({len(p) for p in packets[:-1]}, {size}, "lengths")
        same(len(packets[-1]) <= size, True, "the last")
        whole, start = b"".join(packets), 0
        for end in (*pieces, len(whole)):
            more = end < len(whole)
            by_another(self.s.sendmsg, [whole[start:end]],
                       [(SOL_UDP, UDP_SEGMENT, struct.pack("H", size))],
                       socket.MSG_MORE if more else 0,
                       (address(self.family, to), PORT))
            start = end

    def receive(self, *kinds):
        """The next packet of these kinds"""
        while True:
            packet = self.s.recv(65536)
            p = Packet(*struct.unpack("!BBHIIIIIBBBBIHH", packet[:36]),
                       packet[36:])
            if p.kind in kinds:
                return p

    def chunk(self, job, epoch, first, n, flags=0):
        """Lanes of n fragments of a run, in whatever order they come"""
        lanes = {}

        def complete():
            p = self.receive(DATA)
            # who is impatient sends again, also of what was before
            if ((p.job, p.epoch, p.flags & ACK) == (job, epoch, flags) and
                    0 <= p.seq - first < n):
                values = struct.unpack(f"<{p.elements}i",
                                       p.payload[:4 * p.elements])
                same(lanes.setdefault(p.seq - first, values), values)
            return len(lanes) == n
        wait_for(complete, "fragments")
        return [x for k in range(n) for x in lanes[k]]


class Cable:
    """Two namespaces; the other end is self.far"""
    def __init__(self, family, size, before=None):
        """before: what is done here before there is a job"""
        self.family, self.size = family, size
        with contextlib.ExitStack() as stack:
            new_net()
            here = os.open("/proc/self/ns/net", os.O_RDONLY)
            stack.callback(os.close, here)
            new_net()
            self.far = os.open("/proc/self/ns/net", os.O_RDONLY)
            same(libc.setns(here, CLONE_NEWNET), 0, "setns")
        run("ip", "link", "add", "near", "type", "veth", "peer", "name", "far",
            "netns", f"/proc/{os.getpid()}/fd/{self.far}")
        self.up("near", PS, NEAR)
        with inside(self.far):
            self.up("far", FAR, STRANGER)
        if before:
            before()
        self.nl = Netlink()

    def up(self, device, *numbers):
        prefix, *more = ("24",) if self.family == 4 else ("64", "nodad")
        for n in numbers:
            run("ip", "address", "add", f"{address(self.family, n)}/{prefix}",
                "dev", device, *more)
        run("ip", "link", "set", device, "up")

    def add(self, job, ps, *workers):
        self.nl.add(job, address(self.family, ps),
                    [address(self.family, w) for w in workers],
                    # a machine that is slow is not dead
                    attr(J_FRAGMENT, 4 * self.size) + attr(J_TIMEOUT, 600000))

    def control(self, kind, job, **fields):
        return control(kind, job, **{"fragment": 4 * self.size, "bitmap": 2,
                                     "nonce": NONCE, **fields})

    def cut(self, lanes, job=JOB, first=0, flags=0, **fields):
        """A chunk in packets"""
        parts = [lanes[k:k + self.size]
                 for k in range(0, len(lanes), self.size)]
        return [data(job, part, **{
            "seq": first + k, "epoch": self.epoch(job), "bitmap": 2,
            "flags": flags | (LAST if k + 1 == len(parts) else 0), **fields})
            for k, part in enumerate(parts)]

    def counted(self, job=None):
        return {k.removeprefix("drop_"): v
                for k, v in self.nl.counters(job).items()
                if k.startswith(("in_", "drop_"))}

    def comes(self, send, in_job=None, **expect):
        """It is counted so in the namespace, and likewise in the job if nothing
        else is said."""
        then, job_then = self.counted(), self.counted(JOB)

        def rise(now, then):
            return {k: v - then[k] for k, v in now.items() if v != then[k]}
        send()
        wait_for(lambda: all(rise(self.counted(), then).get(k, 0) >= v
                             for k, v in expect.items()), f"{expect}")
        same(rise(self.counted(), then), expect, "in the namespace")
        same(rise(self.counted(JOB), job_then),
             expect if in_job is None else in_job, "in the job")


class PsHere(Cable):
    """PS and rank 0 here, rank 1 is played by this script."""
    def __init__(self, family=4, size=62, before=None):
        super().__init__(family, size, before)
        self.hand = Hand(self, FAR)
        self.epochs, self.socks = {}, {}
        self.join(JOB)

    def epoch(self, job):
        return self.epochs.get(job, 0)

    def join(self, job):
        self.add(job, PS, NEAR, FAR)
        s = self.socks[job] = sock()
        start_join(s, job, 0)
        self.hand.send(self.control(T_JOIN, job), PS)
        self.epochs[job] = self.hand.receive(WELCOME).epoch
        wait_for(lambda: Info(s).state == JOINED, "joined")
        s.settimeout(LIMIT)

    def far_lanes(self, n):
        """Of rank 1: n fragments, of which the last is shorter"""
        return [5 * k - 1000 for k in range(n * self.size - 51)]

    def finish(self, lanes, job=JOB, first=0):
        """Rank 0 adds what it has, and both get the sum."""
        mine = [3 * k for k in range(len(lanes))]
        want = [a + b for a, b in zip(mine, lanes)]
        pushed(self.socks[job], *mine)
        n = -(-len(lanes) // self.size)
        same(self.hand.chunk(job, self.epoch(job), first, n, ACK), want,
             "sum there")
        same(pulled(self.socks[job], len(lanes)), want, "sum here")
        same(Info(self.socks[job]).state, JOINED)

    def works(self):
        lanes = self.far_lanes(3)
        first = Info(self.socks[JOB]).nxt
        for packet in self.cut(lanes, first=first):
            self.hand.send(packet, PS)
        self.finish(lanes, first=first)


class PsThere(Cable):
    """Ranks here, the PS is played by this script; a rank that is not here is
    nobody's.
    """
    def __init__(self, family=4, ranks=1):
        super().__init__(family, 62)
        self.hand = Hand(self, FAR)
        self.add(JOB, FAR, NEAR, NEAR if ranks == 2 else STRANGER)
        self.ranks, self.run, self.nonces = ranks, EPOCH, set()
        self.socks, self.want = [], None

    def epoch(self, _):
        return self.run

    def join(self):
        """A new run"""
        for s in self.socks:
            s.close()
        self.socks = [sock() for _ in range(self.ranks)]
        self.run += 1
        for rank, s in enumerate(self.socks):
            start_join(s, JOB, rank)
        for _ in self.socks:
            while True:
                p = self.hand.receive(T_JOIN)
                nonce = struct.unpack("!I", p.payload[:4])[0]
                # it is repeated until it is answered
                if nonce not in self.nonces:
                    break
            self.nonces.add(nonce)
            self.hand.send(self.control(WELCOME, JOB, nonce=nonce, ranks=3,
                                        bitmap=p.bitmap, epoch=self.run), NEAR)
        for s in self.socks:
            wait_for(lambda s=s: Info(s).state == JOINED, "joined")
            s.settimeout(LIMIT)

    def push(self, n=10):
        """A chunk of n fragments, the last is shorter; return: the answers.  In
        a new run, for that begins with a window of ten: who has waited for
        long sends less at once.
        """
        self.join()
        lanes = [7 * k for k in range(n * self.size - 51)]
        for s in self.socks:
            pushed(s, *lanes)
        same(self.hand.chunk(JOB, self.run, 0, n), lanes, "pushed")
        for s in self.socks:
            wait_for(lambda s=s: Info(s).nxt == n, "sent")
        self.want = [-k for k in lanes]
        return self.cut(self.want, flags=ACK)

    def pull(self):
        for s in self.socks:
            same(pulled(s, len(self.want)), self.want, "result")
            same(Info(s).state, JOINED)


def to_the_ps(family=4, size=62, n=10):
    r = PsHere(family, size)
    lanes = r.far_lanes(n)
    for first in (0, n):
        r.comes(lambda k=first: r.hand.burst(r.cut(lanes, first=k), PS),
                in_packets=n, in_bursts=1)
        r.finish(lanes, first=first)


@test
def at_the_ps():
    to_the_ps()


@test
def at_the_ps_by_ipv6():
    to_the_ps(6)


@test
def at_the_ps_in_full_fragments():
    to_the_ps(size=350, n=20)
    to_the_ps(6, size=350, n=20)


@test
def of_two_packets():
    to_the_ps(n=2)


@test
def in_pieces_at_the_ps():
    """Each packet in one piece: it is taken.  One in two: it is not."""
    r = PsHere()
    lanes, size = r.far_lanes(10), 36 + 4 * r.size
    for first, pieces, bursts in (
            (0, (3 * size,), {"in_bursts": 1}),
            (10, (3 * size + 100,), {}),
            (20, (size, 2 * size, 9 * size), {"in_bursts": 1}),
            (30, (10,), {}),
            (40, (9 * size + 20,), {})):
        r.comes(lambda k=first, p=pieces: r.hand.burst(
            r.cut(lanes, first=k), PS, p), in_packets=10, **bursts)
        r.finish(lanes, first=first)


def at_workers(family=4, ranks=1):
    r = PsThere(family, ranks)
    for _ in range(2):
        answers = r.push()
        r.comes(lambda a=answers: r.hand.burst(a, NEAR),
                in_packets=10, in_bursts=1)
        r.pull()


@test
def at_a_worker():
    at_workers()


@test
def at_a_worker_by_ipv6():
    at_workers(6)


@test
def at_two_workers():
    """One burst for both ranks of a host"""
    at_workers(ranks=2)


# As long as a whole fragment of 62 lanes
NONSENSE = (
    ("version", {"version": 2}), ("flags", {"flags": 1 << 12}),
    ("dtype", {"dtype": 9}), ("fanin", {"tree": 1}), ("bitmap", {"bitmap": 4}),
    ("elements", {"elements": 0}), ("elements", {"elements": 61}),
    ("length", {"elements": 60}), ("epoch", {"epoch": 1}),
    ("future", {"seq": 1 << 20}))


@test
def nonsense_at_the_ps():
    """One packet in the middle of a burst: the others are used."""
    r = PsHere()
    lanes = r.far_lanes(5)
    for n, (reason, fields) in enumerate(NONSENSE):
        good = r.cut(lanes, first=5 * n)
        bad = data(JOB, lanes[124:186], **{
            "seq": 5 * n + 2, "epoch": r.epoch(JOB), "bitmap": 2, "flags": 0,
            **fields})
        r.comes(lambda p=(*good[:2], bad, *good[3:]): r.hand.burst(p, PS),
                in_packets=5, in_bursts=1, **{reason: 1})
        # what it took the place of
        r.hand.send(good[2], PS)
        r.finish(lanes, first=5 * n)


@test
def nonsense_at_a_worker():
    r = PsThere()
    for reason, fields in (
            ("version", {"version": 2}), ("flags", {"flags": ACK | 1 << 12}),
            ("dtype", {"dtype": 9}), ("fanin", {"fanin": 3}),
            ("length", {"elements": 60}), ("elements", {"elements": 61}),
            ("epoch", {"epoch": 1}), ("unsent", {"seq": 1 << 20})):
        good = r.push(5)
        bad = data(JOB, r.want[124:186], **{
            "seq": 2, "epoch": r.epoch(JOB), "flags": ACK, **fields})
        r.comes(lambda g=good, b=bad: r.hand.burst(
            (*g[:2], b, *g[3:]), NEAR), in_packets=5, in_bursts=1,
            **{reason: 1})
        r.hand.send(good[2], NEAR)
        r.pull()


@test
def nonsense_comes_first():
    """Then nobody knows what the burst is: UDP cuts it."""
    r = PsHere()
    lanes = r.far_lanes(5)
    good = r.cut(lanes)
    bad = b"\2" + good[0][1:]
    r.comes(lambda: r.hand.burst((bad, *good[1:]), PS), in_packets=5,
            version=1, in_job={"in_packets": 4})
    r.hand.send(good[0], PS)
    r.finish(lanes)


@test
def short_header_at_the_end():
    r = PsHere()
    lanes = r.far_lanes(5)
    good = r.cut(lanes)
    r.comes(lambda: r.hand.burst((*good[:4], good[4][:35]), PS), in_packets=5,
            short=1, in_job={"in_packets": 4})
    r.hand.send(good[4], PS)
    r.finish(lanes)


@test
def duplicates_at_the_ps():
    r = PsHere()
    lanes = r.far_lanes(10)
    r.comes(lambda: r.hand.burst(r.cut(lanes), PS), in_packets=10, in_bursts=1)
    for _ in range(2):
        # of other values, which must not be added
        r.comes(lambda: r.hand.burst(r.cut([9] * len(lanes)), PS),
                in_packets=10, in_bursts=1, duplicate=10)
    r.finish(lanes)
    r.works()


@test
def duplicates_at_a_worker():
    r = PsThere()
    answers = r.push()
    r.comes(lambda: r.hand.burst(answers, NEAR), in_packets=10, in_bursts=1)
    r.comes(lambda: r.hand.burst(answers, NEAR), in_packets=10, in_bursts=1,
            duplicate=10)
    r.pull()
    same(Info(r.socks[0]).duplicates, 10)
    answers = r.push()
    r.hand.burst(answers, NEAR)
    r.pull()


@test
def congestion_at_the_ps():
    """A mark on the buffer is one on each of its packets."""
    for family in (4, 6):
        r = PsHere(family)
        lanes = r.far_lanes(10)
        r.comes(lambda r=r, v=lanes: r.hand.burst(r.cut(v), PS),
                in_packets=10, in_bursts=1)
        r.finish(lanes)
        same(r.nl.counters(JOB)["ecn"], 0)
        r.hand.mark(CE)
        r.comes(lambda r=r, v=lanes: r.hand.burst(r.cut(v, first=10), PS),
                in_packets=10, in_bursts=1)
        same(r.nl.counters(JOB)["ecn"], 10)
        r.finish(lanes, first=10)
        # rank 0 is told in each answer
        same(Info(r.socks[JOB]).ecn, 10)


@test
def congestion_at_a_worker():
    for family in (4, 6):
        r = PsThere(family)
        for tos, marks in ((ECT0, 0), (CE, 10)):
            answers = r.push()
            r.hand.mark(tos)
            r.comes(lambda r=r, a=answers: r.hand.burst(a, NEAR),
                    in_packets=10, in_bursts=1)
            r.pull()
            same(Info(r.socks[0]).ecn, marks)


@test
def two_jobs():
    """Both get what is theirs, but not in a burst."""
    r = PsHere()
    r.join(OTHER)
    lanes, more = list(range(5 * r.size)), list(range(3))
    one, other = (r.cut(lanes, job=job) for job in (JOB, OTHER))
    # one after the other, in turn, and another one at the end alone
    for mixed in (one[:2] + other[:2],
                  (one[2], other[2], one[3], other[3])):
        r.comes(lambda m=mixed: r.hand.burst(m, PS), in_packets=4,
                in_job={"in_packets": 2})
    r.comes(lambda: r.hand.burst(
        [one[4], other[4], *r.cut(more, OTHER, first=5)], PS), in_packets=3,
        in_job={"in_packets": 1})
    r.finish(lanes)
    r.finish(lanes, job=OTHER)
    r.finish(more, job=OTHER, first=5)


@test
def both_directions():
    r = PsHere()
    lanes = r.far_lanes(5)
    good = r.cut(lanes)
    # who has the address of a worker is not the PS
    answers = r.cut(lanes, flags=ACK)
    r.comes(lambda: r.hand.burst(
        (good[0], answers[1], good[2], good[3], answers[4]), PS),
        in_packets=5, stranger=2)
    for k in (1, 4):
        r.hand.send(good[k], PS)
    r.finish(lanes)


@test
def unknown_job():
    r = PsHere()
    r.comes(lambda: r.hand.burst(r.cut(r.far_lanes(10), UNKNOWN), PS),
            in_packets=10, job=10, in_job={})
    r.works()


@test
def control_packets():
    r = PsHere()
    ping = r.control(PING, JOB, epoch=r.epoch(JOB))
    r.comes(lambda: r.hand.burst([ping] * 5, PS), in_packets=5)
    for _ in range(5):
        r.hand.receive(PONG)
    r.works()


@test
def control_packet_at_the_end():
    r = PsHere()
    lanes = r.far_lanes(5)
    ping = r.control(PING, JOB, epoch=r.epoch(JOB))
    r.comes(lambda: r.hand.burst((*r.cut(lanes)[:4], ping), PS), in_packets=5)
    r.hand.receive(PONG)
    r.hand.send(r.cut(lanes)[4], PS)
    r.finish(lanes)


@test
def strangers_at_the_ps():
    r = PsHere()
    stranger = Hand(r, STRANGER)
    r.comes(lambda: stranger.burst(r.cut(r.far_lanes(10)), PS), in_packets=10,
            stranger=10)
    r.works()


@test
def strangers_at_a_worker():
    r = PsThere()
    stranger = Hand(r, STRANGER)
    answers = r.push()
    r.comes(lambda: stranger.burst([b"\1" + a[1:36] + bytes(len(a) - 36)
                                    for a in answers], NEAR),
            in_packets=10, stranger=10)
    r.comes(lambda: r.hand.burst(answers, NEAR), in_packets=10, in_bursts=1)
    r.pull()


@test
def port_of_a_user():
    r = PsHere()
    user = Hand(r, FAR, 0)
    r.comes(lambda: user.burst(r.cut(r.far_lanes(10)), PS), in_packets=10,
            stranger=10)
    r.works()


@test
def where_the_ps_is_not():
    r = PsHere()
    r.comes(lambda: r.hand.burst(r.cut(r.far_lanes(10)), NEAR), in_packets=10,
            state=10)
    r.works()


@test
def options():
    """UDP cuts it, each packet has them."""
    r = PsHere()
    r.hand.s.setsockopt(socket.IPPROTO_IP, socket.IP_OPTIONS, bytes([1] * 4))
    r.comes(lambda: r.hand.burst(r.cut(r.far_lanes(10)), PS), in_packets=10,
            options=10, in_job={})
    r.hand.s.setsockopt(socket.IPPROTO_IP, socket.IP_OPTIONS, b"")
    r.works()


@test
def rules_of_ipsec():
    """Each packet is looked at, and passes or does not."""
    r = PsHere()
    lanes = r.far_lanes(10)
    rule = ("dir", "in", "src", address(4, FAR), "dst", address(4, PS))
    run("ip", "xfrm", "policy", "add", *rule, "action", "allow")
    r.comes(lambda: r.hand.burst(r.cut(lanes), PS), in_packets=10)
    r.finish(lanes)
    run("ip", "xfrm", "policy", "delete", *rule)
    r.comes(lambda: r.hand.burst(r.cut(lanes, first=10), PS), in_packets=10,
            in_bursts=1)
    r.finish(lanes, first=10)


@test
def rules_of_the_host():
    """What they do not let in is not seen."""
    run("modprobe", "nf_tables")
    # one after the other comes in so, too
    os.sched_setaffinity(0, list(os.sched_getaffinity(0))[:1])
    r = PsHere()
    stranger = Hand(r, STRANGER)
    lanes = r.far_lanes(10)
    filter_input((bytes_are(1, 12, socket.inet_aton(address(4, FAR))),
                  bytes_are(2, 2, struct.pack("!H", PORT)), verdict(DROP)))
    burst = r.cut(lanes)

    def both():
        r.hand.burst(burst, PS)
        stranger.send(burst[0], PS)
    r.comes(both, in_packets=1, stranger=1)
    rules((DEL_TABLE, be("t")))
    r.comes(lambda: r.hand.burst(burst, PS), in_packets=10, in_bursts=1)
    r.finish(lanes)


def track():
    """As most hosts that have rules do"""
    run("modprobe", "-a", "nf_tables", "nft_ct")
    filter_input((state_is(KNOWN), verdict(ACCEPT)),
                 (state_is(INVALID), verdict(DROP)))


@test
def connections_are_tracked():
    """From before the job on, or since the middle of a run"""
    for early in (True, False):
        r = PsHere(before=track if early else None)
        if not early:
            track()
        lanes = r.far_lanes(10)

        def burst(first, r=r, lanes=lanes):
            r.hand.burst(r.cut(lanes, first=first), PS)
        for first in range(0, 40, 10):
            r.comes(lambda k=first, b=burst: b(k), in_packets=10, in_bursts=1)
            r.finish(lanes, first=first)
        line = tracked(4, FAR, PS)
        same((line.count("\n"), "UNREPLIED" in line), (1, False), line)
        # it is one that lasts, by the bursts alone
        wait_for(lambda b=burst: b(30) or "ASSURED" in tracked(4, FAR, PS),
                 "assured")
        r.works()


@test
def first_of_a_connection():
    """It goes on, for who tracks connections to know it; the next is taken."""
    r = PsHere(before=track)
    r.add(OTHER, PS, NEAR, STRANGER)
    hand = Hand(r, STRANGER)
    # no run goes on there
    burst = r.cut(r.far_lanes(10), OTHER)
    for more in ({}, {"in_bursts": 1}):
        r.comes(lambda: hand.burst(burst, PS), in_packets=10, epoch=10,
                in_job={}, **more)
        same(tracked(4, STRANGER, PS).count("\n"), 1, "tracked")
    r.works()


@test
def of_the_module_itself():
    """Over lo nothing is cut, and most bursts have fragments alone."""
    new_net()
    nl = Netlink()
    nl.add(JOB, more=attr(J_TIMEOUT, 600000))
    socks = join(JOB)
    sum_works(socks, 100000)
    counters = {}

    def settled():
        counters.update(nl.counters())
        return counters["in_packets"] == counters["out_packets"]
    wait_for(settled, "all has come in")
    print("#", counters["out_bursts"], "bursts, whole", counters["in_bursts"])
    same(2 * counters["in_bursts"] > counters["out_bursts"] > 0, True)


main()
