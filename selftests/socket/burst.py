# SPDX-License-Identifier: GPL-2.0
"""A host with the module and one without, joined by a cable.

"Here" is the module's; the other one has no job: there a script owns port 4797
and plays a worker, the PS, or a stranger, with bursts made by hand.
"""
import collections
import concurrent.futures
import contextlib
import os
import socket
import struct
import time

from atptest import (
    ACK, CLONE_NEWNET, DATA, JOINED, J_FRAGMENT, J_TIMEOUT, LAST, LIMIT, PONG, PORT,
    T_JOIN, WELCOME, Info, Netlink, attr, control, data, libc, new_net, pulled,
    pushed, run, same, sock, start_join, wait_for,
)

JOB = 7
NONCE, EPOCH = 4711, 77
SOL_UDP, UDP_SEGMENT = 17, 103
ECT0 = 2
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

    def quiet(self):
        """On a slow machine somebody here may have sent again what was answered
        meanwhile, and that is on its way still."""
        seen = since = None

        def calm():
            nonlocal seen, since
            now = self.nl.counters(None)
            if now != seen:
                seen, since = now, time.monotonic()
            return time.monotonic() - since > 0.05
        wait_for(calm, "quiet")

    def comes(self, send, in_job=None, **expect):
        """It is counted so in the namespace, and likewise in the job if nothing
        else is said."""
        self.quiet()
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
        # which wants to see that again
        p = self.hand.receive(PONG)
        self.hand.send(self.control(T_JOIN, job, epoch=p.epoch, seq=p.seq), PS)
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
