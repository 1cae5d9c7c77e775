#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The packets that everybody refuses (../vectors/packets), at a PS and a worker
in the kernel, over IPv4 and IPv6: each is counted once, under its reason and no
other, and where none was taken the next sum is right."""
import array
import itertools
import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../lib"))
from atptest import (  # noqa: E402
    FLOAT32, INT32, JOINING, J_FRAGMENT, J_TIMEOUT, J_WAITING, J_WINDOW, DTYPE,
    RAW, SOL_ATP, T_JOIN, Info, Netlink, attr, join, main, new_net, pushed, run, same,
    sock, start_join, sum_works, test, u32, udp, wait_for,
)

JOB, RANK = 7, 1
FILE = os.path.join(HERE, "../vectors/packets")


def vectors():
    """((workers, fragment, window, state), name, packets) of each vector;
    packets: (from, to, reason, payload)"""
    job, lines = None, []
    with open(FILE, encoding="ascii") as f:
        for words in map(str.split, f):
            if words[0] == "job":
                job = (*map(int, words[1:4]), words[4])
            elif not words[0].startswith("#"):
                name, way, reason, _, payload = words
                payload = "" if payload == "-" else payload
                lines.append((job, name, *way.split(">"), reason,
                              bytes.fromhex(payload)))
    for (job, name), packets in itertools.groupby(lines, lambda l: l[:2]):
        yield job, name, [packet[2:] for packet in packets]


class Rack:
    """The job in its state"""
    def __init__(self, family, workers, fragment, window, state):
        new_net()
        self.family = family
        ranks = [str(r) for r in range(workers)]
        # of 127.0.0.0/8 lo has all
        for host in ("ps", "x", *ranks) if family == 6 else ():
            run("ip", "address", "add", self.address(host), "dev", "lo", "nodad")
        self.nl = Netlink()
        self.nl.add(JOB, self.address("ps"), [self.address(r) for r in ranks],
                    # a machine that is slow is not dead
                    more=attr(J_TIMEOUT, 600000) + attr(J_WINDOW, window) +
                    attr(J_FRAGMENT, fragment))
        if state == "joining":
            self.socks = {RANK: sock()}
            start_join(self.socks[RANK], JOB, RANK)
            same(self.info().state, JOINING)
        else:
            self.socks = dict(enumerate(join(JOB, workers)))
        if state == "idle":
            sum_works(list(self.socks.values()))
        if state == "pushed":
            self.push()
        self.epoch, self.seq = self.info().epoch, None
        self.state, self.due = state, self.nl.drops()
        # what a timer may cause at any time, too: after a sum on a slow machine
        self.noise = {"duplicate", "old"} if state == "idle" else set()

    def address(self, host):
        """Each rank has one of its own."""
        n = {"ps": 1, "x": 99}.get(host) or int(host) + 2
        return f"127.0.0.{n}" if self.family == 4 else f"fd00::{n}"

    def info(self):
        return Info(self.socks[RANK])

    def push(self):
        s = self.socks[RANK]
        pushed(s, *[0] * 10)
        s.setsockopt(SOL_ATP, DTYPE, FLOAT32)
        s.send(array.array("f", [0.0] * 3).tobytes())
        s.setsockopt(SOL_ATP, DTYPE, INT32)
        pushed(s, *[0] * 4)
        same(self.info().nxt, 4)
        wait_for(lambda: u32(self.nl.job(JOB).get(J_WAITING)) == 0b101,
                 "the PS has the first fragment")

    def of_run(self, payload):
        """The epoch and the sequence number are relative."""
        if len(payload) < 36:
            return payload
        epoch, seq = struct.unpack_from("!II", payload, 8)
        return payload[:8] + struct.pack(
            "!II", (epoch + self.epoch) & 0xffffffff,
            (seq + self.seq) & 0xffffffff) + payload[16:]

    def waiting(self):
        return u32(self.nl.job(JOB)[J_WAITING])

    def quiet(self):
        """Was what was due dropped, and nothing else?"""
        return all(n == self.due[r] or n > self.due[r] and r in self.noise
                   for r, n in self.nl.drops().items())

    def met(self, to, reason, flags, payload):
        """Why a worker drops what the PS says to it, if it does"""
        if to != "ps":
            return None
        # the rank is told what to repeat, and has not asked
        if reason == "nonce" and payload[1] == T_JOIN and any(payload[12:16]):
            return "nonce"
        if reason == "epoch":
            return "state" if self.state == "joining" else "epoch"
        if reason == "ok" and flags & RAW:
            # the other rank is asked for the same
            return "unsent"
        return None

    def play(self, name, packets):
        self.seq = self.info().una
        for source, to, reason, payload in packets:
            una = self.info().una
            flags, = struct.unpack_from("!H", payload.ljust(4, b"\0"), 2)
            met = self.met(to, reason, flags, payload)
            for drop in (reason, met):
                if drop in self.due:
                    self.due[drop] += 1
            udp(self.address(source), self.of_run(payload), self.address(to))
            what = f"{name}: {source}>{to}: {reason}"
            if reason == "ok":
                self.taken(to, payload, una, what)
            wait_for(self.quiet, f"{what}, {met}")

    def taken(self, to, payload, una, what):
        if to == "ps":
            ranks, = struct.unpack_from("!I", payload, 16)
            wait_for(lambda: self.waiting() and not self.waiting() & ranks,
                     what)
        else:
            # its next fragment is sent, for which the PS has no room
            self.noise.add("future")
            wait_for(lambda: self.info().una == una + 1, what)

    def still_works(self):
        same(self.info().epoch, self.epoch, "the run")
        same(self.quiet(), True, "nothing else was dropped")
        sum_works(list(self.socks.values()))
        self.due = self.nl.drops()


def takes_nothing(job, packets):
    """Then the state is as before, for the next vector."""
    return job[3] == "idle" and len(packets) == 1


def each_for_its_reason(family):
    # packets for one port on one processor keep their order
    os.sched_setaffinity(0, {0})
    rack, of_job, n = None, None, 0
    for job, name, packets in vectors():
        if not (rack and of_job == job and takes_nothing(job, packets)):
            rack, of_job = Rack(family, *job), job
        rack.play(name, packets)
        if takes_nothing(job, packets):
            rack.still_works()
        else:
            rack = None
        n += len(packets)
    same(n > 100, True)


@test
def each_for_its_reason_over_ipv4():
    each_for_its_reason(4)


@test
def each_for_its_reason_over_ipv6():
    each_for_its_reason(6)


main()
