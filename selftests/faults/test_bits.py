#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""One flipped bit, anywhere in a packet, changes nothing.

The hosts' own packets are led into a hole, where they are captured: nothing
moves but what this test injects.  For the last gradient of a fragment, its
parameter packet and what the switch makes of both, for request, values and
result on the overflow path, and for each control packet from a run's beginning
to its end, every bit that a checksum covers is flipped, one at a time, and each
such packet is sent before the one that is whole; not all of them in a share, nor
on a slow kernel.  All have to be refused and counted, while PS, workers and
switch stay as they are; then the whole one does what it is for.

No checksum that a host or the switch looks at covers the Ethernet header, nor
IPv6's traffic class, flow label and hop limit.  Those packets may be taken or
not: the sum is right.
"""

import json
import os
import re
import select
import struct
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(here, "../lib"), os.path.join(here, "../rack")]
from atptest import (  # noqa: E402
    ABORT, DATA, FLOAT32, LEAVE, PING, PONG, PORT, STATUS, T_JOIN, WELCOME,
    wait_for,
)
from rack import TOP, atp, rack, run  # noqa: E402
from test_sockets import (  # noqa: E402
    ATP_DTYPE, ATP_INFO, INFO, INT32, LEFT, SOL_ATP, STATE_FAILED, Rank,
    expect,
)
from wire import (  # noqa: E402
    ETH_LEN, Port, checksums_hold, received, receiver, refused,
)

JOB = 7
# An odd number, so that there is padding; a fragment has one lane more.
LANES = 61
FRAGMENT = 248
UDP_LEN, ATP_LEN = 8, 36
WORKERS = 2
# A kernel built to find bugs takes seven times as long: every seventh bit there,
# so that each bit of a byte is met
SLOW = os.uname().release.endswith(("-kasan", "-kcsan"))
STEP = 7 if SLOW else 1
FIRST = 0
# The last argument may be a share, 1/2 or 2/2: every second bit
if re.fullmatch("[1-9]/[1-9]", sys.argv[-1]):
    FIRST, STEP = (int(n) for n in sys.argv.pop().split("/"))
    FIRST -= 1
# Nobody is silent for so long; or still speaks after a fourth of it, in ms
PATIENT, TALKATIVE = 600000, 128000 if SLOW else 32000
# What a worker knows that a parameter packet can change; the rest are times
# and what its own timer does.
WINDOW = ("una", "nxt", "end", "cwnd", "ssthresh", "srtt_us")
# What is not ATP comes to hosts at any time.
STRAY = b"\xff" * 6 + b"\x02" + 5 * b"\0" + b"\x88\xb5" + bytes(46)
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
    """What it holds and has done, and the packets that it refused: of the job,
    and those that look like a packet with options or a fragment."""
    shown = tell("switch", "switch", "show")
    job, = (job for job in shown["jobs"] if job["job"] == JOB)
    drops = sum(v for k, v in job["counters"].items() if k.startswith("drop"))
    state = {k: v for k, v in job["counters"].items()
             if not k.startswith("drop")}
    state["occupied"] = job["occupied"]
    return state, drops + shown["others"]["options"]


class Hole:
    """What a host sends ends here; what it gets, if it is shut."""

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

    def frame(self, **wanted):
        """The first with these fields that was not asked for yet."""

        def first():
            self.captured += self.port.frames()
            for at, frame in enumerate(self.captured):
                if all(getattr(frame, k) == v for k, v in wanted.items()):
                    return self.captured.pop(at)
            return None

        return wait_for(first, f"frame from {self.host}")

    def shut(self):
        """Behind where frames are captured; for ATP, as hosts look for routers
        and neighbours, too."""
        for protocol in ("ip", "ipv6"):
            subprocess.run(f"tc -n atp-{self.host} filter add dev eth0 ingress "
                           f"protocol {protocol} flower ip_proto udp "
                           f"dst_port {PORT} action drop".split(),
                           check=True)

    def dropped(self):
        shown = subprocess.check_output(
            f"tc -n atp-{self.host} -s filter show dev eth0 ingress".split(),
            text=True)
        return sum(int(n) for n in re.findall(r"dropped (\d+)", shown))

    def open(self):
        subprocess.run(f"tc -n atp-{self.host} filter del dev eth0 "
                       "ingress".split(), check=True)

    def close(self):
        self.port.close()
        for command in ("tc -n {0} qdisc del dev eth0 clsact",
                        "ip -n {0} link del hole"):
            subprocess.run(
                command.format(f"atp-{self.host}").split(), check=True
            )


def is_covered(frame, bit):
    """Is the bit under a checksum?"""
    at = bit - 8 * ETH_LEN
    if frame.v6 and (4 <= at < 32 or 56 <= at < 64):
        return False
    return at >= 0


def flips(frame, covered):
    """All that differ in one bit, with a checksum over it or without."""
    for bit in range(FIRST, 8 * len(frame.raw), STEP):
        if is_covered(frame, bit) != covered:
            continue
        raw = bytearray(frame.raw)
        raw[bit // 8] ^= 0x80 >> bit % 8
        # A checksum of a single bit: without it there is none, which IPv4
        # allows.  That is refused elsewhere, under another counter.
        if not any(raw[frame.l4 + 6:frame.l4 + 8]):
            continue
        yield bytes(raw)


class Bench:
    """A run of two workers in which only injected packets move, from its
    beginning or when all have joined."""

    def __init__(self, family, switch, joined=True, timeout=PATIENT):
        self.family, self.switch = family, switch
        rack(*(["switch_on"] if switch else ["switch_off"]))
        rack("job_add", JOB, WORKERS, family, "fragment", FRAGMENT,
             "timeout", timeout)
        self.ranks = [Rank(rank, JOB) for rank in range(WORKERS)]
        self.ports, self.holes = {}, {}
        if not joined:
            self.dig()
        for rank in self.ranks:
            rank.begin()
        if joined:
            for rank in self.ranks:
                rank.joined()
                rank.sock.setsockopt(SOL_ATP, ATP_DTYPE, INT32)
            self.dig()

    def dig(self):
        for host in ("w0", "w1", "ps"):
            self.holes[host] = Hole(host)

    def fill(self, *hosts):
        """What they send moves again."""
        for host in hosts:
            self.holes.pop(host).close()

    def close(self):
        for port in self.ports.values():
            port.close()
        self.fill(*list(self.holes))
        for rank in self.ranks:
            rank.close()
        rack("job_del", JOB)

    def way(self, source, to):
        """The port to inject at and the one that takes it: before the switch,
        or behind it if there is none or the source is the switch."""
        if self.switch and source != "switch":
            return (source, "eth0"), ("switch", source)
        return ("switch", to), (to, "eth0")

    def port(self, end):
        if end not in self.ports:
            self.ports[end] = Port(*end)
        return self.ports[end]

    def send(self, frame, source, to):
        self.port(self.way(source, to)[0]).send(frame.raw)

    def deliver(self, frame, source, to):
        """Until the host has taken or refused it."""
        at, _ = self.way(source, to)
        self.port(at).send_all([frame.raw], lambda: received(to, "eth0"))

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

    def held(self, frame, source, to, hosts):
        """What the switch makes of the frame, for each of the hosts, which do
        not get it."""
        inlets = []
        for host in hosts:
            self.holes[host].shut()
            inlets.append(Port(host, "eth0"))
            self.port(("switch", host)).send(STRAY)
        self.send(frame, source, to)
        frames = []
        for inlet in inlets:
            came = wait_for(lambda i=inlet: i.frames(incoming=True),
                            f"what the switch sends to {inlet.host}")
            expect([checksums_hold(f) for f in came], [True])
            frames += came
            # it was seen on its way there
            hole = self.holes[inlet.host]
            wait_for(lambda h=hole: h.dropped() == 1,
                     "drop of a single packet")
            hole.open()
            inlet.close()
        return frames

    def inject_uncovered(self, frame, source, to):
        """And the whole one."""
        many = list(flips(frame, False))
        at, taker = self.way(source, to)
        self.port(at).send_all(many, lambda: received(*taker))
        self.send(frame, source, to)
        print(f"# {len(many)} packets with a flipped bit under no checksum "
              f"from {source} to {to}, switch {self.switch}, "
              f"IPv{self.family}")

    def inject_flips(self, frame, source, to):
        many = list(flips(frame, True))
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


VALUES = [[(rank + 1) * (lane - 31) * 33000001 % (1 << 29) - (1 << 28)
           for lane in range(LANES)] for rank in range(WORKERS)]
# a float32 that no step of the scale comes to
HUGE, = struct.unpack("=f", struct.pack("=f", 1e30))
SUMS = [sum(lane) for lane in zip(*VALUES)]


def push(bench, seq):
    """A fragment of every rank, and what their hosts would have sent."""
    for rank in bench.ranks:
        rank.push(*VALUES[rank.rank])
    return [bench.holes[f"w{rank}"].frame(kind=DATA, ack=False, seq=seq)
            for rank in range(WORKERS)]


def what_checksums_cover(bench, seq):
    gradients = push(bench, seq)
    for rank in bench.ranks:
        wait_for(lambda r=rank: settled(r), "expiry")
    for frame in gradients:
        expect((checksums_hold(frame), frame.elements), (True, LANES))
        # the padding is there
        expect(frame.raw[-4:], bytes(4))
        expect(len(frame.raw), frame.l4 + UDP_LEN + ATP_LEN + FRAGMENT)

    bench.send(gradients[0], "w0", "ps")
    if bench.switch:
        wait_for(lambda: switch_state()[0]["occupied"] == 1, "aggregator")
        # sent again it takes along what the switch has, which is then free
        again = bench.holes["w0"].frame(kind=DATA, ack=False, seq=seq)
        part, = bench.held(again, "w0", "ps", ["ps"])
        expect((part.bitmap, part.elements), (1, LANES))
        expect(switch_state()[0]["occupied"], 0)
        bench.inject_flips(part, "switch", "ps")
        bench.send(gradients[0], "w0", "ps")
        wait_for(lambda: switch_state()[0]["occupied"] == 1, "aggregator")
    else:
        wait_for(lambda: ps_state().get("waiting") == [1], "gradient")
    bench.inject_flips(gradients[1], "w1", "ps")

    if bench.switch:
        # what the switch has added is under a right checksum, too
        total, = bench.held(gradients[1], "w1", "ps", ["ps"])
        expect(total.bitmap, (1 << WORKERS) - 1)
        expect(switch_state()[0]["occupied"], 1)
        bench.inject_flips(total, "switch", "ps")
        bench.send(total, "switch", "ps")
    else:
        bench.send(gradients[1], "w1", "ps")
    answers = parameters(bench, seq)
    for frame in answers:
        expect((checksums_hold(frame), frame.elements), (True, LANES))
    # the last one goes to the second worker, or is for the switch to copy
    bench.inject_flips(answers[-1], "ps", "w0" if bench.switch else "w1")

    if bench.switch:
        copies = bench.held(answers[0], "ps", "w0", ["w0", "w1"])
        wait_for(lambda: not switch_state()[0]["occupied"], "release")
        for rank, frame in enumerate(copies):
            bench.inject_flips(frame, "switch", f"w{rank}")
            bench.send(frame, "switch", f"w{rank}")
            wait_for(lambda r=rank: info(bench.ranks[r])["una"] > seq,
                     "result")
    else:
        for rank, frame in enumerate(answers):
            bench.send(frame, "ps", f"w{rank}")
    for rank in bench.ranks:
        expect(list(rank.pull(LANES)), SUMS)


def parameters(bench, seq, values=False):
    """What the PS would have sent: for each worker, or for the switch."""
    return [bench.holes["ps"].frame(kind=DATA, ack=True, seq=seq,
                                    values=values)
            for _ in range(1 if bench.switch else WORKERS)]


def on_its_way(bench, frame, source, *hosts):
    """To the switch and from there, or straight to the only host."""
    bench.inject_flips(frame, source, hosts[0])
    if not bench.switch:
        bench.send(frame, source, hosts[0])
        return
    copies = bench.held(frame, source, hosts[0], hosts)
    for host, copy in zip(hosts, copies):
        bench.inject_flips(copy, "switch", host)
        bench.send(copy, "switch", host)


def what_overflows(bench, seq):
    """What rank 0 pushes fits no sum, so rank 1 is asked for its values."""
    before = [info(rank)["timeouts"] for rank in bench.ranks]
    for rank, value in zip(bench.ranks, (HUGE, 10.0)):
        rank.sock.setsockopt(SOL_ATP, ATP_DTYPE, FLOAT32)
        rank.sock.send(struct.pack("=2f", value, 0.5))
    for rank, n in zip(bench.ranks, before):
        wait_for(lambda r=rank, n=n: info(r)["timeouts"] > n, "expiry")
    bench.send(bench.holes["w0"].frame(kind=DATA, ack=False, values=True),
               "w0", "ps")
    request = bench.holes["ps"].frame(kind=DATA, ack=True, seq=seq)
    # a switch copies it for all, of whom rank 0 has nothing to add
    hosts = ["w0", "w1"] if bench.switch else ["w1"]
    expect((receiver(request), request.elements),
           (1 if bench.switch else 2, 0))
    on_its_way(bench, request, "ps", *hosts)
    values = bench.holes["w1"].frame(kind=DATA, ack=False, values=True)
    on_its_way(bench, values, "w1", "ps")
    answers = parameters(bench, seq, values=True)
    if bench.switch:
        on_its_way(bench, answers[0], "ps", "w0", "w1")
    else:
        bench.inject_flips(answers[-1], "ps", "w1")
        for rank, frame in enumerate(answers):
            bench.send(frame, "ps", f"w{rank}")
    for rank in bench.ranks:
        expect(struct.pack("=2i", *rank.pull(2)), struct.pack("=2f", HUGE, 1.0))
        rank.sock.setsockopt(SOL_ATP, ATP_DTYPE, INT32)


def what_no_checksum_covers(bench, seq):
    """Such a packet may be added, and the sum lost for its address: then the
    hosts send again, as they always do."""
    for rank, frame in enumerate(push(bench, seq)):
        bench.inject_uncovered(frame, f"w{rank}", "ps")
    bench.fill("w0", "w1")
    for rank, frame in enumerate(parameters(bench, seq)):
        bench.inject_uncovered(frame, "ps", f"w{rank}")
    bench.fill("ps")
    for rank in bench.ranks:
        expect(list(rank.pull(LANES)), SUMS)
    # once: the next ones are others
    for rank in bench.ranks:
        rank.push(*reversed(VALUES[rank.rank]))
    for rank in bench.ranks:
        expect(list(rank.pull(LANES)), SUMS[::-1])


def bench_of(family, switch):
    bench = Bench(family, switch)
    try:
        what_checksums_cover(bench, 0)
        what_overflows(bench, 1)
        what_no_checksum_covers(bench, 2)
    finally:
        bench.close()


def beginning_of(family, switch):
    """Every bit of both JOINs, of the PONG that says what the second must repeat,
    and of the WELCOME that answers that."""
    bench = Bench(family, switch, joined=False)
    try:
        for rank in range(WORKERS):
            first = bench.holes[f"w{rank}"].frame(kind=T_JOIN, seq=0)
            bench.inject_flips(first, f"w{rank}", "ps")
            bench.send(first, f"w{rank}", "ps")
            pong = bench.holes["ps"].frame(kind=PONG, bitmap=1 << rank)
            expect(receiver(pong), rank + 1)
            bench.inject_flips(pong, "ps", f"w{rank}")
            bench.send(pong, "ps", f"w{rank}")
            join = bench.holes[f"w{rank}"].frame(kind=T_JOIN, seq=pong.seq)
            bench.inject_flips(join, f"w{rank}", "ps")
            was = ps_state()
            bench.send(join, f"w{rank}", "ps")
            wait_for(lambda was=was: ps_state() != was, "JOIN at the PS")
        for rank in bench.ranks:
            welcome = bench.holes["ps"].frame(kind=WELCOME)
            expect(receiver(welcome), rank.rank + 1)
            bench.inject_flips(welcome, "ps", f"w{rank.rank}")
            bench.send(welcome, "ps", f"w{rank.rank}")
            rank.joined()
    finally:
        bench.close()


def staying(bench):
    """PING and what it is answered with."""
    for rank in range(WORKERS):
        ping = bench.holes[f"w{rank}"].frame(kind=PING)
        bench.inject_flips(ping, f"w{rank}", "ps")
        bench.send(ping, f"w{rank}", "ps")
        pong = bench.holes["ps"].frame(kind=PONG)
        expect(receiver(pong), rank + 1)
        bench.inject_flips(pong, "ps", f"w{rank}")
        bench.send(pong, "ps", f"w{rank}")


def waiting(bench):
    """STATUS for who asks and waits for another."""
    push(bench, 0)
    for rank in bench.ranks:
        wait_for(lambda r=rank: settled(r), "expiry")
    question = bench.holes["w0"].frame(kind=DATA, ack=False, seq=0)
    bench.send(question, "w0", "ps")
    status = bench.holes["ps"].frame(kind=STATUS)
    expect((receiver(status), status.seq, status.bitmap), (1, 0, 1))
    bench.inject_flips(status, "ps", "w0")
    gone = bench.gone("w0")
    bench.deliver(status, "ps", "w0")
    expect(bench.gone("w0"), gone)


def leaving(bench):
    """LEAVE of one, and the ABORT that it is to the other, who waits for it."""
    bench.ranks.pop().close()
    leave = bench.holes["w1"].frame(kind=LEAVE)
    bench.inject_flips(leave, "w1", "ps")
    bench.send(leave, "w1", "ps")
    abort = bench.holes["ps"].frame(kind=ABORT)
    expect(receiver(abort), 1)
    bench.inject_flips(abort, "ps", "w0")
    bench.send(abort, "ps", "w0")
    wait_for(lambda: bench.ranks[0].info() == (STATE_FAILED, LEFT, 2),
             "the end of the run")


def end_of(family, switch):
    bench = Bench(family, switch, timeout=TALKATIVE)
    try:
        staying(bench)
        waiting(bench)
        leaving(bench)
    finally:
        bench.close()


def every_bit_of_an_end_over_ipv4():
    for switch in (False, True):
        end_of(4, switch)


def every_bit_of_an_end_over_ipv6():
    for switch in (False, True):
        end_of(6, switch)


def every_bit_of_a_beginning_over_ipv4():
    for switch in (False, True):
        beginning_of(4, switch)


def every_bit_of_a_beginning_over_ipv6():
    for switch in (False, True):
        beginning_of(6, switch)


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
    rack("job_add", JOB, WORKERS, family, "fragment", FRAGMENT)
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
    every_bit_of_a_beginning_over_ipv4,
    every_bit_of_a_beginning_over_ipv6,
    every_bit_of_an_end_over_ipv4,
    every_bit_of_an_end_over_ipv6,
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
