#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""One flipped bit, anywhere in a packet, changes nothing.

The hosts' own packets are led into a hole, where they are captured: nothing
moves but what this test injects.  For the last gradient of a fragment, and for
its parameter packet, every bit behind the Ethernet header is flipped, one at a
time, and each such packet is sent before the one that is whole.  All have to be
refused and counted, while PS, workers and switch stay as they are; then the
whole one completes the sum.
"""

import json
import os
import select
import struct
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(here, "../lib"), os.path.join(here, "../rack")]
from atptest import wait_for  # noqa: E402
from rack import TOP, atp, rack, run  # noqa: E402
from test_sockets import (  # noqa: E402
    ATP_DTYPE, ATP_INFO, INFO, INT32, SOL_ATP, Rank, expect,
)
from wire import (  # noqa: E402
    ETH_LEN, Port, checksums_hold, received, refused,
)

JOB = 7
LANES = 62
WORKERS = 2
# What a worker knows that a parameter packet can change; the rest are times
# and what its own timer does.
WINDOW = ("una", "nxt", "end", "cwnd", "ssthresh", "srtt_us")
COUNTED = ("ecn", "raw", "duplicates", "chunks")
NAMES = ("state reason ranks job rank workers epoch fragment window scale una "
         "nxt end cwnd ssthresh srtt_us rto_us flags sent resent "
         "fast_retransmits timeouts ecn raw duplicates chunks").split()


def info(rank):
    raw = rank.sock.getsockopt(SOL_ATP, ATP_INFO, 1000)
    return dict(zip(NAMES, struct.unpack(INFO, raw)))


def tell(host, *words):
    """What the tool says, as JSON."""
    status, output = atp(host, "-json", *words)
    expect((status, output if status else ""), (0, ""))
    return json.loads(output)


def ps_state():
    job = tell("ps", "-stats", "job", "show", JOB)
    job = job[0] if isinstance(job, list) else job
    # time goes on
    job.pop("stall_ms", None)
    return job


def switch_state():
    job = tell("switch", "switch", "show", "job", JOB)
    job = job["jobs"][0] if "jobs" in job else job
    drops = sum(v for k, v in job["counters"].items() if k.startswith("drop"))
    state = {k: v for k, v in job["counters"].items()
             if not k.startswith("drop")}
    state["occupied"] = job["occupied"]
    return state, drops


class Hole:
    """What a host sends ends here."""

    def __init__(self, host):
        self.host = host
        for command in (
            "ip -n {0} link add hole type dummy",
            "ip -n {0} link set hole up",
            "tc -n {0} qdisc add dev eth0 clsact",
            "tc -n {0} filter add dev eth0 egress matchall "
            "action mirred egress redirect dev hole",
        ):
            subprocess.run(
                command.format(f"atp-{host}").split(), check=True
            )
        self.port = Port(host, "hole")
        self.captured = []

    def frame(self, ack):
        """The first gradient or parameter packet that was not asked for yet."""

        def first():
            self.captured += [f for f in self.port.frames() if f.ack == ack]
            return self.captured and self.captured.pop(0)

        return wait_for(first, f"frame from {self.host}")

    def close(self):
        self.port.close()
        for command in ("tc -n {0} qdisc del dev eth0 clsact",
                        "ip -n {0} link del hole"):
            subprocess.run(
                command.format(f"atp-{self.host}").split(), check=True
            )


def flips(frame):
    """All that differ in one bit behind the Ethernet header."""
    for bit in range(8 * ETH_LEN, 8 * len(frame.raw)):
        at = bit - 8 * ETH_LEN
        # IPv6's traffic class, flow label and hop limit are under no checksum.
        if frame.v6 and (4 <= at < 32 or 56 <= at < 64):
            continue
        raw = bytearray(frame.raw)
        raw[bit // 8] ^= 0x80 >> bit % 8
        # A checksum of a single bit: without it there is none, which IPv4
        # allows.  That is refused elsewhere, under another counter.
        if not any(raw[frame.l4 + 6:frame.l4 + 8]):
            continue
        yield bytes(raw)


class Bench:
    """A run of two workers in which only injected packets move."""

    def __init__(self, family, switch):
        self.family, self.switch = family, switch
        rack(*(["switch_on"] if switch else ["switch_off"]))
        rack("job_add", JOB, WORKERS, family, "fragment", 4 * LANES,
             "timeout", 600000)
        self.ranks = [Rank(rank, JOB) for rank in range(WORKERS)]
        for rank in self.ranks:
            rank.begin()
        for rank in self.ranks:
            rank.joined()
            rank.sock.setsockopt(SOL_ATP, ATP_DTYPE, INT32)
        self.holes = {host: Hole(host) for host in ("w0", "w1", "ps")}
        self.ports = {}

    def close(self):
        for port in self.ports.values():
            port.close()
        for hole in self.holes.values():
            hole.close()
        for rank in self.ranks:
            rank.close()
        rack("job_del", JOB)

    def way(self, source, to):
        """The port to inject at and the one that takes it: before the switch,
        or behind it."""
        if self.switch:
            return (source, "eth0"), ("switch", source)
        return ("switch", to), (to, "eth0")

    def port(self, end):
        if end not in self.ports:
            self.ports[end] = Port(*end)
        return self.ports[end]

    def send(self, frame, source, to):
        self.port(self.way(source, to)[0]).send(frame.raw)

    def gone(self, host):
        """Packets refused by the switch and by a host's IP and UDP."""
        count = refused(host, self.family == 6)
        return count + (switch_state()[1] if self.switch else 0)

    def state(self):
        state = {"ps": ps_state()}
        for rank in self.ranks:
            now = info(rank)
            state[rank.rank] = {k: now[k] for k in WINDOW + COUNTED}
        if self.switch:
            state["switch"] = switch_state()[0]
        return state

    def inject_flips(self, frame, source, to):
        many = list(flips(frame))
        at, taker = self.way(source, to)
        was, gone = self.state(), self.gone(to)
        self.port(at).send_all(many, lambda: received(*taker))
        wait_for(lambda: self.gone(to) - gone >= len(many),
                 f"end of {len(many)} flips, {self.gone(to) - gone} refused")
        expect(self.gone(to) - gone, len(many))
        expect(self.state(), was)
        print(f"# {len(many)} packets with a flipped bit from {source} "
              f"to {to}, switch {self.switch}, IPv{self.family}: all refused")


def settled(rank):
    """Its timer has run out: from now on its window changes no more."""
    return info(rank)["timeouts"] > 0


def fragment(bench):
    values = [[(rank + 1) * (lane - 31) * 33000001 % (1 << 29) - (1 << 28)
               for lane in range(LANES)] for rank in range(WORKERS)]
    for rank in bench.ranks:
        rank.push(*values[rank.rank])
    gradients = [bench.holes[f"w{rank}"].frame(ack=False)
                 for rank in range(WORKERS)]
    for rank in bench.ranks:
        wait_for(lambda r=rank: settled(r), "expiry")
    for frame in gradients:
        expect((checksums_hold(frame), frame.elements), (True, LANES))

    bench.send(gradients[0], "w0", "ps")
    if bench.switch:
        wait_for(lambda: switch_state()[0]["occupied"] == 1, "aggregator")
    else:
        wait_for(lambda: ps_state().get("waiting") == [1], "gradient")
    bench.inject_flips(gradients[1], "w1", "ps")

    outlet = Port("ps", "eth0")
    bench.send(gradients[1], "w1", "ps")
    answers = [bench.holes["ps"].frame(ack=True)]
    if bench.switch:
        # what the switch has added is under a right checksum, too
        sums = [f for f in outlet.frames(incoming=True)
                if f.bitmap == (1 << WORKERS) - 1]
        expect([checksums_hold(f) for f in sums], [True])
        expect(switch_state()[0]["occupied"], 1)
    else:
        answers.append(bench.holes["ps"].frame(ack=True))
    outlet.close()
    for frame in answers:
        expect((checksums_hold(frame), frame.elements), (True, LANES))
    # the last one goes to the second worker, or is for the switch to copy
    bench.inject_flips(answers[-1], "ps", "w0" if bench.switch else "w1")

    inlets = [Port(f"w{rank}", "eth0") for rank in range(WORKERS)]
    for rank, frame in enumerate(answers):
        bench.send(frame, "ps", f"w{rank}")
    for rank in bench.ranks:
        expect(list(rank.pull(LANES)), [sum(lane) for lane in zip(*values)])
    for inlet in inlets:
        copies = inlet.frames(incoming=True)
        expect([checksums_hold(f) for f in copies], [True])
        inlet.close()
    if bench.switch:
        wait_for(lambda: not switch_state()[0]["occupied"], "release")


def bench_of(family, switch):
    bench = Bench(family, switch)
    try:
        fragment(bench)
    finally:
        bench.close()


def every_bit_over_ipv4_without_a_switch():
    bench_of(4, False)


def every_bit_over_ipv4_through_the_switch():
    bench_of(4, True)


def every_bit_over_ipv6_without_a_switch():
    bench_of(6, False)


def every_bit_over_ipv6_through_the_switch():
    bench_of(6, True)


def legs(family, switch):
    """Whatever runs, what is on a leg has complete checksums."""
    rack("switch_on" if switch else "switch_off")
    rack("job_add", JOB, WORKERS, family, "fragment", 4 * LANES)
    ports = [Port(host, "eth0") for host in ("w0", "w1", "ps")]
    seen = 0
    try:
        with subprocess.Popen(
            [os.path.join(TOP, "build/selftests/rack/worker"),
             "--job", str(JOB), "--workers", str(WORKERS), "--chunks", "12",
             "--lanes", "4000", "--dtype", "mixed", "--values", "wild"],
            stdout=subprocess.PIPE, text=True,
        ) as workers:
            going = True
            while going:
                going = workers.poll() is None
                select.select(ports_of(ports), [], [], 0.05)
                for port in ports:
                    for frame in port.frames():
                        seen += 1
                        expect(checksums_hold(frame), True)
            expect((workers.wait(), workers.stdout.read().split()[0]),
                   (0, "right"))
    finally:
        for port in ports:
            port.close()
        rack("job_del", JOB)
    expect([port.ways for port in ports], 3 * [{False, True}])
    print(f"# {seen} frames, switch {switch}, IPv{family}: all right")


def ports_of(ports):
    return [port.sock for port in ports]


def all_legs_carry_complete_checksums():
    for family in (4, 6):
        for switch in (False, True):
            legs(family, switch)


TESTS = (
    all_legs_carry_complete_checksums,
    every_bit_over_ipv4_without_a_switch,
    every_bit_over_ipv4_through_the_switch,
    every_bit_over_ipv6_without_a_switch,
    every_bit_over_ipv6_through_the_switch,
)


def main():
    subprocess.run(["modprobe", "atp"], check=True)
    rack("up", WORKERS, 1500)
    try:
        return run(TESTS)
    finally:
        rack("down")


if __name__ == "__main__":
    sys.exit(main())
