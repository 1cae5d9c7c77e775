#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Bursts that come in as one buffer: plain ones are taken whole, all others are
cut by UDP, and each packet is counted as if it had come alone."""
import os
import socket
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../lib"))
from atptest import (  # noqa: E402
    ACK, DATA, J_TIMEOUT, PING, PONG, PORT, Info, Netlink, attr, data, join,
    main, new_net, pushed, run, same, sum_works, test, wait_for,
)
from burst import (  # noqa: E402
    FAR, JOB, NEAR, PS, STRANGER, Hand, PsHere, PsThere, address,
)
from netfilter import (  # noqa: E402
    ACCEPT, DEL_TABLE, DROP, INVALID, KNOWN, Verdicts, be, bytes_are,
    filter_input, rules, state_is, verdict,
)

OTHER, UNKNOWN = 8, 9
ECT0, CE = 2, 3


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


def left_by(device):
    """Buffers, of however many packets"""
    with open("/proc/thread-self/net/dev", encoding="ascii") as f:
        line, = (line for line in f if line.split(":")[0].strip() == device)
    return int(line.split(":")[1].split()[9])


@test
def answers_come_alone():
    """Not each of them lets a fragment go alone."""
    n = 1000
    r = PsThere()
    r.join()
    s, = r.socks
    r.want = [7 * k for k in range(n * r.size - 51)]
    answers = r.cut(r.want, flags=ACK)
    left = left_by("near")
    pushed(s, *r.want)
    answered = set()
    while len(answered) < n:
        seq = r.hand.receive(DATA).seq
        answered.add(seq)
        r.hand.send(answers[seq], NEAR)
    r.pull()
    left, info = left_by("near") - left, Info(s)
    print(f"# {left} buffers, {info.sent} fragments, {info.resent} again, "
          f"{info.timeouts} timeouts")
    same(info.sent, n)
    # a window that grows, at first or after a timeout, does so by small bursts
    most = n // 8 + info.resent + 20 * (1 + info.timeouts)
    same(left <= min(most, n // 2), True, f"at most {most}")


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
def by_a_device_of_a_vrf():
    """The socket is of none, so UDP does not give it anything from there."""
    run("modprobe", "vrf")
    r = PsHere()
    lanes = r.far_lanes(10)
    before = r.counted()["in_packets"]
    run("ip", "link", "add", "apart", "type", "vrf", "table", "10")
    run("ip", "link", "set", "apart", "up")
    run("ip", "link", "set", "near", "master", "apart")
    r.hand.burst(r.cut(lanes), PS)
    for packet in r.cut(lanes):
        r.hand.send(packet, PS)
    run("ip", "link", "set", "near", "nomaster")
    same(r.counted()["in_packets"], before)
    r.comes(lambda: r.hand.burst(r.cut(lanes), PS), in_packets=10, in_bursts=1)
    r.finish(lanes)


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


@test
def let_go_on_by_a_process():
    """Then it is a process that takes the burst."""
    run("modprobe", "-a", "nf_tables", "nft_queue", "nfnetlink_queue")
    r = PsHere()
    verdicts = Verdicts()
    queue = (("queue", (struct.pack("!H", 0), struct.pack("!H", 1))),)
    filter_input((bytes_are(1, 12, socket.inet_aton(address(4, FAR))), queue))
    lanes = r.far_lanes(10)

    def asked(first):
        r.hand.burst(r.cut(lanes, first=first), PS)
        verdicts.accept()
    for first in range(0, 40, 10):
        r.comes(lambda k=first: asked(k), in_packets=10, in_bursts=1)
        r.finish(lanes, first=first)
    rules((DEL_TABLE, be("t")))
    r.works()


def tracked(family, *ends):
    """The line of a connection between addresses, as the one who began it"""
    src, dst = (address(family, e) for e in ends)
    with open("/proc/net/nf_conntrack", encoding="ascii") as f:
        return "".join(line for line in f
                       if 0 <= line.find(f"src={src} dst={dst} ") <
                       line.rfind("src="))


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
    """Who tracks connections has begun later, and is asked before us."""
    r = PsHere(before=track)
    r.add(OTHER, PS, NEAR, STRANGER)
    hand = Hand(r, STRANGER)
    # no run goes on there
    burst = r.cut(r.far_lanes(10), OTHER)
    for _ in range(2):
        r.comes(lambda: hand.burst(burst, PS), in_packets=10, in_bursts=1,
                epoch=10, in_job={})
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
