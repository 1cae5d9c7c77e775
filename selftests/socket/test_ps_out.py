#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""What waits at the PS to be sent is limited to 16 MiB, and so is what waits in queues
of devices, for each job; what finds no room there is counted, and sent to those who ask
again.

For the first far more than a network does is needed for that: all ranks but one have sent a
window, and the last one's comes at once, so that each packet makes one of 3,436 bytes
for each of 32 hosts before anything is sent.
"""
import contextlib
import os
import select
import socket
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../lib"))
from atptest import (  # noqa: E402
    ACK, DATA, INT32, LAST, PONG, PORT, RESEND, T_JOIN, WELCOME, header, main,
    run, same, test, wait_for,
)
from burst import (  # noqa: E402
    JOB, NONCE, PS, SOL_UDP, UDP_SEGMENT, Cable, Hand, Packet, address, inside,
)

RANKS, WINDOW, LANES = 32, 256, 850
OTHER = JOB + 1
BYTES = 36 + 4 * LANES
QUEUED = 16 << 20
NEAR_MAC, FAR_MAC = "02:00:00:00:00:01", "02:00:00:00:00:02"
FIRST = 100         # address of rank 0
BURST = 18          # packets
ATTEMPTS = 20
SO_RCVBUFFORCE = 33


class Ranks(Cable):
    """All are played by this script, each at an address of its own."""
    def __init__(self, family=4, ranks=RANKS):
        super().__init__(family, LANES, self.widen)
        self.ranks = ranks
        numbers = range(FIRST, FIRST + ranks)
        self.add(JOB, PS, *numbers)
        with inside(self.far):
            self.up("far", *numbers)
        self.hands = [Hand(self, number) for number in numbers]
        # of all others it is enough that their packets were sent
        for hand in self.hands[1:]:
            hand.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        self.hands[0].s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)
        self.run = self.join()
        self.payloads, self.got = {}, set()

    def widen(self):
        run("ip", "link", "set", "near", "mtu", "4000", "address", NEAR_MAC)
        with inside(self.far):
            run("ip", "link", "set", "far", "mtu", "4000", "address", FAR_MAC)

    def is_at(self, number, device, mac):
        run("ip", "neigh", "replace", address(self.family, number), "lladdr", mac,
            "dev", device, "nud", "permanent")

    def join(self):
        for rank, hand in enumerate(self.hands):
            mine = {"bitmap": 1 << rank, "nonce": NONCE + rank,
                    "fanin": self.ranks, "workers": self.ranks}
            hand.send(self.control(T_JOIN, JOB, **mine), PS)
            p = hand.receive(PONG)
            hand.send(self.control(T_JOIN, JOB, epoch=p.epoch, seq=p.seq,
                                   **mine), PS)
        return self.hands[0].receive(WELCOME).epoch

    def packet(self, rank, seq, flags=0):
        payload = self.payloads.setdefault(
            seq, struct.pack(f"<{LANES}i", *(seq + k for k in range(LANES))))
        return header(DATA, JOB, epoch=self.run, seq=seq, bitmap=1 << rank,
                      fanin=self.ranks, dtype=INT32, elements=LANES,
                      flags=LAST | flags) + payload

    def push(self, rank, first, flags=0):
        """A window, in bursts that follow each other as fast as can be"""
        packets = [self.packet(rank, seq, flags)
                   for seq in range(first, first + WINDOW)]
        each = struct.pack("H", len(packets[0]))
        bursts = [b"".join(packets[at:at + BURST])
                  for at in range(0, WINDOW, BURST)]
        for burst in bursts:
            self.hands[rank].s.sendmsg([burst], [(SOL_UDP, UDP_SEGMENT, each)],
                                       0, (address(self.family, PS), PORT))

    def pushed(self, ranks, first, flags=0):
        """All of them a window; it has come when this returns."""
        before = self.nl.counters()["in_packets"]
        for rank in ranks:
            self.push(rank, first, flags)
        wait_for(lambda: self.nl.counters()["in_packets"] - before ==
                 WINDOW * len(ranks), "received")

    @contextlib.contextmanager
    def at_once(self):
        """What is sent there waits longer than it takes to send it."""
        with inside(self.far):
            run("tc", "qdisc", "add", "dev", "far", "root", "netem", "delay",
                "200ms")
            yield
            run("tc", "qdisc", "del", "dev", "far", "root")

    def pull(self):
        """What rank 0 has been sent is right."""
        s = self.hands[0].s
        while select.select([s], [], [], 0)[0]:
            packet = s.recv(65536)
            p = Packet(*struct.unpack("!BBHIIIIIBBBBIHH", packet[:36]),
                       packet[36:])
            if p.kind != DATA:
                continue
            same((p.epoch, p.flags & (ACK | LAST), p.elements),
                 (self.run, ACK | LAST, LANES))
            same(struct.unpack(f"<{LANES}i", p.payload),
                 tuple(self.ranks * (p.seq + k) for k in range(LANES)), "sum")
            self.got.add(p.seq)
        return self.got


def window(ranks, first):
    """Return: how many packets found no room."""
    ranks.pushed(range(RANKS - 1), first)
    same(ranks.pull() & set(range(first, first + WINDOW)), set(), "before")
    before = ranks.nl.counters()
    with ranks.at_once():
        ranks.pushed([RANKS - 1], first)

    def sent():
        now = ranks.nl.counters()
        return {k: now[k] - before[k] for k in ("out_packets", "out_nomem")}
    wait_for(lambda: sum(sent().values()) == RANKS * WINDOW, "sent or counted")
    return sent()["out_nomem"]


@test
def more_than_may_wait():
    ranks = Ranks()
    refused = first = 0
    for _ in range(ATTEMPTS):
        refused = window(ranks, first)
        print(f"# {refused} of {RANKS * WINDOW} packets found no room")
        due = set(range(first, first + WINDOW))

        def all_there():
            """Who has got no answer asks again."""
            missing = due - ranks.pull()
            for seq in missing:
                ranks.hands[0].send(ranks.packet(0, seq, RESEND), PS)
            return not missing
        wait_for(all_there, "sums")
        first += WINDOW
        if refused:
            break
    same(refused > 0, True, "the limit was reached")
    # what waits no more is forgotten: there is room again
    ranks.pushed(range(RANKS), first)
    wait_for(lambda: set(range(first, first + WINDOW)) <= ranks.pull(), "next")


def more_than_may_be_queued(family):
    """By a device that holds what it shall send"""
    ranks = Ranks(family, 1)
    # which holds, too, what hosts ask and say of where they are
    ranks.is_at(FIRST, "near", FAR_MAC)
    with inside(ranks.far):
        ranks.is_at(PS, "far", NEAR_MAC)
    # netem would hold it without charging anybody
    run("tc", "qdisc", "add", "dev", "near", "root", "tbf", "rate", "8kbit",
        "burst", "4000", "limit", "1000000000")
    before = ranks.nl.counters()
    ranks.pushed([0], 0)

    def now():
        counters = ranks.nl.counters()
        return {k: counters[k] - before[k] for k in ("out_packets", "out_nomem")}
    for _ in range(QUEUED // BYTES // WINDOW):
        if now()["out_nomem"]:
            break
        ranks.pushed([0], 0, RESEND)
    print("#", now())
    same(now()["out_nomem"] > 0, True, "the limit was reached")
    # a packet takes more than its bytes, but not twice as much
    same(QUEUED // 2 < now()["out_packets"] * BYTES <= QUEUED, True, "the limit")
    same(len(ranks.pull()) < WINDOW, True, "held")
    # another job has room of its own
    ranks.nl.add(OTHER, address(family, PS), [address(family, FIRST)])
    ranks.hands[0].send(ranks.control(T_JOIN, OTHER, bitmap=1, nonce=NONCE,
                                      fanin=1, workers=1), PS)
    wait_for(lambda: ranks.nl.counters(OTHER)["out_packets"] == 1, "answer")
    same(ranks.nl.counters(OTHER)["out_nomem"], 0)
    run("tc", "qdisc", "del", "dev", "near", "root")
    ranks.pushed([0], 0, RESEND)
    wait_for(lambda: len(ranks.pull()) == WINDOW, "sums")


@test
def more_than_may_be_queued_of_ipv4():
    more_than_may_be_queued(4)


@test
def more_than_may_be_queued_of_ipv6():
    more_than_may_be_queued(6)


main()
