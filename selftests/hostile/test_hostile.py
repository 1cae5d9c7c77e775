#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Forged, stale and broken packets at the PS, at a worker and at the switch.

Each is counted under its reason, exactly as often as it came, and changes no
sum, no window and no aggregator; ../socket/test_packets.py and the tests of the
switch look closer at single fields.
"""
import errno
import os
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(HERE, "../lib"))
# pylint: disable=wrong-import-position
from atptest import (ABORT, ACK, DATA, ECN, EDGE, FAILED, FLOAT32, INT32, LAST, LEAVE,
                     MCAST, OVERFLOW, PING, PONG, RAW, RESEND, STATUS, SUM,
                     SWITCHED, T_JOIN, WELCOME, control, data, header, refused,
                     same, wait_for)
from live import FRAGMENTS, HOSTS, JOBS, Live
from rack import atp, rack, run
from wire import (Recorder, fragments, frame, in_vlan, ip_of, layers, lying,
                  payload_at, priority_tagged, tagged, with_options)

LANES = [1, 2, 3, 4]
UNDEFINED = [1 << bit for bit in range(10, 16)]
FAR = 1 << 31
REJOIN = 3
ETHERTYPE, ETH_P_8021Q = {4: 0x0800, 6: 0x86dd}, 0x8100

live = None


def family(job):
    return JOBS[job][0]


def ranks(job):
    return JOBS[job][1]


def good(job, **fields):
    """What rank 0 sends now, but for what is said"""
    return {"epoch": live.epoch(job), "seq": live.info(job).una,
            "fanin": ranks(job), **fields}


def answer(job, **fields):
    return good(job, **{"flags": ACK | LAST, **fields})


def count(host, reasons):
    """{(host, reason): n} of a list"""
    return {(host, r): reasons.count(r) for r in set(reasons)}


def at_ps(job, packets, src="w0", via=None):
    """packets: [(payload, reason)]"""
    live.inject(job, "host", "ps", [frame(family(job), src, "ps", p, via=via)
                                    for p, _ in packets],
                count("ps", [r for _, r in packets]))


def at_worker(job, packets, src="ps"):
    live.inject(job, "host", "w0", [frame(family(job), src, "w0", p)
                                    for p, _ in packets],
                count("w0", [r for _, r in packets]))


def for_each_job(function):
    def both():
        live.during(lambda: [function(job) for job in JOBS])
    both.__name__ = function.__name__
    return both


def wrong_anywhere(job, base, make):
    """Fields that are wrong whoever sends the packet to whom; base: good"""
    def one(reason, **fields):
        return make({**base, **fields}), reason

    return [
        *[one("version", version=v) for v in (0, 2, 255)],
        *[(header(t, job, **{**base, "flags": 0}) + bytes(32), "type")
          for t in (0, 9, 255)],
        *[one("flags", flags=base["flags"] | f) for f in UNDEFINED],
        one("flags", flags=base["flags"] | EDGE),
        one("flags", flags=0xffff),
        one("flags", flags=base["flags"] | RAW | OVERFLOW),
        *[one("dtype", dtype=t) for t in (0, 3, 255)],
        *[one("fanin", fanin1=f) for f in (1, 255)],
        *[one("fanin", tree=t) for t in (1, 255)],
        *[one("its fanin", fanin=f) for f in (ranks(job) - 1, ranks(job) + 1)],
        *[one("bitmap", bitmap1=b) for b in (1, FAR)],
        *[one("elements", elements=n) for n in (0, 851, 65535)],
        *[one("length", elements=n) for n in (1, 5, 850)],
        *[(make(base)[:n], "short" if n < 36 else "length")
          for n in range(len(make(base)))],
        (make(base) + bytes(8), "length"),
    ]


@for_each_job
def fields_of_gradients_at_the_ps(job):
    base = good(job, flags=LAST, bitmap=1, dtype=INT32)

    def make(fields):
        return data(job, LANES, **fields)

    def one(reason, **fields):
        return make({**base, **fields}), reason

    at_ps(job, wrong_anywhere(job, base, make) + [
        one("flags", flags=LAST | MCAST),
        *[one("fanin", fanin=f) for f in (0, 255)],
        *[one("bitmap", bitmap=b) for b in (0, 1 << ranks(job), FAR)],
        # a sum, but of no switch; what no switch adds
        one("bitmap", bitmap=3),
        one("bitmap", bitmap=3, flags=RAW | SWITCHED | LAST),
        # more than the job's fragment; less, and not the last
        (data(job, [0] * 351, **base), "its elements"),
        one("its elements", flags=0),
        *[(data(j, LANES, **base), "job") for j in (0, job + 2, 0xffffffff)],
        *[one("future", seq=(base["seq"] + n) & 0xffffffff)
          for n in (256, FAR - 1)],
        *[one("old", seq=(base["seq"] - n) & 0xffffffff) for n in (257, FAR)],
    ])


@for_each_job
def fields_of_answers_at_a_worker(job):
    base = answer(job, dtype=INT32)

    def make(fields):
        return data(job, LANES, **fields)

    def one(reason, **fields):
        return make({**base, **fields}), reason

    i = live.info(job)
    packets = wrong_anywhere(job, base, make) + [
        one("flags", flags=ACK | RESEND),
        one("flags", flags=ACK | RAW),
        *[one("its fanin", fanin=f) for f in (0, 255)],
        *[(data(j, LANES, **base), "job") for j in (0, job + 2, 0xffffffff)],
        *[one("unsent", seq=(i.nxt + n) & 0xffffffff)
          for n in (0, 1, FAR - 1 - (i.nxt - i.una))],
        # a gradient, where there is no PS
        (data(job, LANES, **{**base, "flags": LAST}), "state"),
    ]
    if i.una != i.nxt:
        # the fragment that is waited for, as it was not sent
        packets += [one("its dtype", dtype=FLOAT32), one("its elements"),
                    (data(job, [], **{**base, "flags": ACK}), "elements")]
    at_worker(job, packets)


@for_each_job
def control_packets(job):
    e = live.epoch(job)
    fields = {"fanin": ranks(job), "epoch": e}

    def wrong(kind):
        def one(reason, **more):
            return control(kind, job, **{**fields, **more}), reason

        whole = control(kind, job, **fields)
        return [
            one("version", version=2), one("dtype", dtype=INT32),
            *[one("flags", flags=f) for f in (1, ACK, 1 << 15)],
            *[one("fanin", fanin1=1), one("fanin", tree=1)],
            one("bitmap", bitmap1=1), one("elements", elements=1),
            (control(kind, job + 2, **fields), "job"),
            *[(whole[:n], "short" if n < 36 else "length")
              for n in (0, 35, 36, 37, 67)], (whole + bytes(1), "length")]

    at_ps(job, [p for kind in (T_JOIN, LEAVE, PING) for p in wrong(kind)] + [
        (control(kind, job, nonce=1, bitmap=b, **fields), "its bitmap")
        for kind in (T_JOIN, LEAVE, PING)
        for b in (0, 3, 1 << ranks(job), FAR)] + [
        (control(LEAVE, job, nonce=1, **fields), "nonce"),
        (control(PING, job, nonce=1, **fields), "nonce"),
        (control(T_JOIN, job, nonce=0, **fields), "nonce"),
        # what is not looked at does not let it in
        *[(control(kind, job, nonce=1, **{**fields, "fanin": n}), "nonce")
          for kind in (LEAVE, PING) for n in (0, ranks(job) + 1, 33, 255)]])
    at_worker(job, [p for kind in (WELCOME, ABORT, STATUS, PONG)
                    for p in wrong(kind)] + [
        # for a rank that is not here
        (control(ABORT, job, bitmap=2, reason=1, **fields), "state"),
        (control(ABORT, job, reason=0, **fields), "its flags"),
        (control(STATUS, job, seq=live.info(job).nxt + 1000, **fields),
         "unsent")])


@for_each_job
def another_epoch(job):
    """The PS tells the worker, for which that is news of another run, too."""
    e = live.epoch(job)
    epochs = [x & 0xffffffff for x in (e - 1, e + 1, ~e, e ^ FAR)]
    live.inject(job, "host", "ps", [
        frame(family(job), "w0", "ps", packet)
        for x in epochs for packet in (
            data(job, LANES, **good(job, epoch=x)),
            control(PING, job, epoch=x, fanin=ranks(job)))],
        {("ps", "epoch"): 8, ("w0", "epoch"): 8})
    at_worker(job, [(packet, "epoch") for x in epochs for packet in (
        data(job, LANES, **answer(job, epoch=x)),
        control(ABORT, job, epoch=x, reason=1),
        control(STATUS, job, epoch=x), control(PONG, job, epoch=x))])


def from_worker(job):
    """Right in all but who it is from"""
    f = {"fanin": ranks(job), "epoch": live.epoch(job)}
    return [data(job, LANES, **good(job)),
            data(job, LANES, **good(job, bitmap=3, flags=SUM)),
            *[control(kind, job, nonce=5, **f)
              for kind in (T_JOIN, LEAVE, PING)]]


def from_ps(job):
    f = {"fanin": ranks(job), "epoch": live.epoch(job)}
    return [data(job, LANES, **answer(job)),
            *[data(job, LANES, **answer(job, flags=ACK | LAST | more))
              for more in (MCAST, ECN)],
            *[control(kind, job, reason=1, **f)
              for kind in (WELCOME, ABORT, STATUS, PONG)]]


@for_each_job
def strangers(job):
    for who in ("stranger", "w2") if job == 8 else ("stranger",):
        at_ps(job, [(p, "stranger") for p in from_worker(job)], src=who)
        at_worker(job, [(p, "stranger") for p in from_ps(job)], src=who)


@for_each_job
def a_worker_plays_another(job):
    """Rank 0's packets from the address of rank 1"""
    packets = from_worker(job)
    del packets[1]     # rank 1 is in that
    at_ps(job, [(p, "stranger") for p in packets], src="w1")


@for_each_job
def a_worker_plays_the_ps(job):
    at_worker(job, [(p, "stranger") for p in from_ps(job)], src="w1")
    at_ps(job, [(p, "stranger") for p in from_ps(job)], src="w1")


@for_each_job
def another_udp_port(job):
    for where, src, packets in (("ps", "w0", from_worker(job)),
                                ("w0", "ps", from_ps(job))):
        live.inject(job, "host", where, [
            frame(family(job), src, where, p, sport=s)
            for p in packets for s in (1, 4796, 4798, 65535)],
            {(where, "stranger"): 4 * len(packets)})


@for_each_job
def what_ip_can_add(job):
    """Right packets in fragments, with options or extension headers"""
    for where, src, packet in (
            ("ps", "w0", data(job, LANES, **good(job))),
            ("w0", "ps", data(job, LANES, **answer(job)))):
        with_more = with_options(family(job), src, where, packet)
        n = len(with_more)
        atomic = family(job) == 6    # the last is a fragment, of one
        live.inject(job, "host", where, with_more + fragments(
            family(job), src, where, packet), {
            (where, "options"): n - atomic, (where, "fragment"): 1 + atomic})


@for_each_job
def what_the_stack_drops(job):
    """It does not come to us; the stack's own counter and reason are named."""
    v4 = family(job) == 4
    for where, src, packet in (
            ("ps", "w0", data(job, LANES, **good(job))),
            ("w0", "ps", data(job, LANES, **answer(job)))):
        eth, low, high = layers(family(job), src, where, packet)
        whole = bytes(eth / low / high)
        marker = frame(family(job), src, where, header(DATA, job, version=9))
        high.chksum = 0xbad
        cases = [("UdpInCsumErrors" if v4 else "Udp6InCsumErrors", "UDP_CSUM",
                  [bytes(eth / low / high)])]
        # IP says more than there is
        cases.append(("IpExtInTruncatedPkts" if v4 else "Ip6InTruncatedPkts",
                      "PKT_TOO_SMALL", [whole[:-n] for n in (1, 8, 40, 60)]))
        if v4:
            wrong = low.copy()
            wrong.chksum = 0xbad
            high.chksum = None
            cases.append(("IpExtInCsumErrors", "IP_CSUM",
                          [bytes(eth / wrong / high)]))
        else:
            high.chksum = 0
            cases.append(("Udp6InCsumErrors", "UDP_CSUM",
                          [bytes(eth / low / high)]))
        for name, reason, frames in cases:
            before = live.snmp(where, name)[0]
            live.inject(job, "host", where, frames + [marker],
                        {(where, "version"): 1})
            same(live.snmp(where, name)[0] - before, len(frames), name)
            live.freed({(reason, ETHERTYPE[family(job)]): len(frames)})


@for_each_job
def a_length_of_udp_that_lies(job):
    v = family(job)
    gradient = data(job, LANES, **good(job))
    for where, src, packet in (
            ("ps", "w0", gradient), ("w0", "ps", data(job, LANES, **answer(job)))):
        # what is not there the stack misses, what is too much it cuts off
        name = "UdpInErrors" if v == 4 else "Udp6InErrors"
        before = live.snmp(where, name)[0]
        live.inject(job, "host", where, [
            lying(v, src, where, packet, n) for n in (8, -8)],
            {(where, "length"): 1})
        same(live.snmp(where, name)[0] - before, 1, name)
        live.freed({("PKT_TOO_SMALL", ETHERTYPE[v]): 1})
    # the last one would be whole to a host: UDP says where its lanes end
    live.inject(job, "switch", "w0", [
        lying(v, "w0", "ps", packet, n) for packet, n in (
            (gradient, 8), (gradient, -8), (gradient + bytes(8), -8))], {},
        {(job, "drop_length"): 3})


def nobody_takes(job, frames, src, to, where="host", host=None):
    """The host's device counts them, before what is ours and comes last.

    To IP, what has a tag is another host's; behind a tag that was taken off, a
    second one is a protocol, of nobody.
    """
    marker = frame(family(job), src, to, header(DATA, job, version=9))
    before = live.left_over(to)
    live.inject(job, where, host or to, frames + [marker], {(to, "version"): 1})
    same(live.left_over(to) - before, len(frames), "counted by the device")
    live.freed({("OTHERHOST", ETHERTYPE[family(job)]): len(frames) - 1,
                ("UNHANDLED_PROTO", ETH_P_8021Q): 1})


@for_each_job
def tags_of_vlans_that_are_not_there(job):
    """Neither hosts nor switch take what is in another VLAN."""
    for src, to, packet in (("w0", "ps", data(job, LANES, **good(job))),
                            ("ps", "w0", data(job, LANES, **answer(job)))):
        frames = tagged(family(job), src, to, packet)
        nobody_takes(job, frames, src, to)
    # and from the worker's port, through the bridge
    frames = tagged(family(job), "w0", "ps", data(job, LANES, **good(job)))
    nobody_takes(job, frames, "w0", "ps", "switch", "w0")


@for_each_job
def tags_without_a_vlan(job):
    """Hosts take them off; what has one comes past no switch."""
    forged = [data(job, [99] * 4, **good(job, flags=LAST)),
              control(LEAVE, job, nonce=5, epoch=live.epoch(job))]
    frames = [f for p in forged
              for f in priority_tagged(family(job), "w0", "ps", p)]
    live.inject(job, "switch", "w1", frames, {},
                {("other", "tagged"): len(frames)})


@for_each_job
def tags_of_a_vlan_that_is_there(job):
    """A host that has it takes them off, and what is behind for any address."""
    for command in ("ip link add link eth0 name eth0.5 type vlan id 5",
                    "ip link set eth0.5 up",
                    "sysctl -q net.ipv4.conf.eth0/5.rp_filter=0"):
        subprocess.run(["ip", "netns", "exec", "atp-ps", *command.split()],
                       check=True)
    try:
        forged = [data(job, [99] * 4, **good(job, flags=LAST)),
                  control(LEAVE, job, nonce=5, epoch=live.epoch(job))]
        frames = [f for p in forged
                  for f in in_vlan(family(job), "w0", "ps", p, 5)]
        live.inject(job, "switch", "w1", frames, {},
                    {(job, "drop_port"): len(frames)})
    finally:
        subprocess.run("ip -n atp-ps link del eth0.5".split(), check=True)


@for_each_job
def no_checksum(job):
    """IPv6 has no packets without; what IPv4 lets in we do not."""
    if family(job) == 6:
        return
    live.inject(job, "host", "ps", [frame(4, "w0", "ps", p, chksum=0)
                                    for p in from_worker(job)],
                {("ps", "checksum"): 5})
    live.inject(job, "host", "w0", [frame(4, "ps", "w0", p, chksum=0)
                                    for p in from_ps(job)],
                {("w0", "checksum"): 7})


@for_each_job
def fields_at_the_switch(job):
    base = good(job, flags=LAST, bitmap=1, dtype=INT32)

    def make(**fields):
        return data(job, LANES, **{**base, **fields})

    whole = make()
    # no sum of ours, and left alone: where it comes from is somebody else's
    left = {"version": [make(version=2)], "job": [data(0, LANES, **base)],
            "type": [header(9, job) + bytes(16)],
            "its fanin": [make(fanin=ranks(job) + 1)],
            "short": [whole[:n] for n in range(36)]}
    live.inject(job, "switch", "w0", [
        frame(family(job), "w0", "ps", p) for many in left.values()
        for p in many], {("ps", reason): len(many)
                         for reason, many in left.items()},
        {("other", "unknown"): 1, ("other", "truncated"): 36,
         (job, "mismatch"): 1})
    refused = {
        "drop_header": [
            *[make(flags=LAST | f) for f in (*UNDEFINED, EDGE, MCAST)],
            *[make(bitmap1=b) for b in (1, FAR)], make(fanin1=1), make(tree=1),
            *[make(dtype=t) for t in (0, 3, 255)],
            header(DATA, job, **{**base, "elements": 0})],
        "drop_length": [
            *[whole[:n] for n in range(36, len(whole))], whole + bytes(8),
            *[make(elements=n) for n in (0, 1, 5, 851, 65535)],
            data(job, [1, 2, 3], **base)[:-4] + b"pads"],
        "drop_bitmap": [make(bitmap=b) for b in (0, 1 << ranks(job), FAR)] +
                       # who claims to be a switch is none
                       [make(bitmap=3), make(bitmap=3, flags=SUM)],
    }
    live.inject(job, "switch", "w0", [
        frame(family(job), "w0", "ps", p) for many in refused.values()
        for p in many], {}, {(job, name): len(many)
                             for name, many in refused.items()})


@for_each_job
def senders_at_the_switch(job):
    """Address, UDP port and port of the switch must be the rank's."""
    v = family(job)
    f = {"fanin": ranks(job), "epoch": live.epoch(job)}
    gradient = data(job, LANES, **good(job))
    second = data(job, LANES, **good(job, bitmap=2))
    parameters = data(job, LANES, **answer(job))
    to_all = data(job, LANES, **answer(job, flags=ACK | LAST | MCAST))
    strange = [
        frame(v, "stranger", "ps", gradient, via="w0"),
        frame(v, "w0", "ps", second),
        frame(v, "w1", "ps", gradient, via="w0"),
        frame(v, "w0", "w1", gradient),
        frame(v, "w0", "ps", gradient, sport=4798),
        frame(v, "w0", "w1", parameters),
        frame(v, "w0", "w1", to_all),
    ]
    elsewhere = [
        frame(v, "w1", "ps", second, via="w0"),
        frame(v, "w1", "ps", data(job, LANES, **{
            **good(job, bitmap=2), "fanin": ranks(job) + 1}), via="w0"),
        frame(v, "ps", "w1", parameters, via="w0"),
        frame(v, "ps", "w1", to_all, via="w0"),
        # what ends a run, and what would be believed without the switch
        *[frame(v, "ps", "w1", control(kind, job, reason=1, bitmap=2, **f),
                via="w0") for kind in (WELCOME, ABORT, STATUS, PONG)],
        *[frame(v, "w1", "ps", control(kind, job, nonce=5, bitmap=2, **f),
                via="w0") for kind in (T_JOIN, LEAVE, PING)],
    ]
    live.inject(job, "switch", "w0", strange + elsewhere, {},
                {(job, "drop_stranger"): len(strange),
                 (job, "drop_port"): len(elsewhere)})
    # the host of the PS is not above it
    live.inject(job, "switch", "ps", [
        frame(v, "w0", "ps", gradient, via="ps"),
        frame(v, "ps", "stranger", parameters)], {},
        {(job, "drop_port"): 1, (job, "drop_stranger"): 1})


@for_each_job
def a_member_of_another_job_at_the_switch(job):
    """w2 is of job 7 only."""
    if job == 7:
        return
    live.inject(job, "switch", "w2", [
        frame(6, "w2", "ps", data(8, LANES, **good(8))),
        frame(6, "w0", "ps", data(8, LANES, **good(8)), via="w2"),
        frame(6, "ps", "w0", data(8, LANES, **answer(8)), via="w2")], {},
        {(8, "drop_stranger"): 1, (8, "drop_port"): 2})


@for_each_job
def checksums_and_ip_at_the_switch(job):
    v = family(job)
    packet = data(job, LANES, **good(job))
    eth, low, high = layers(v, "w0", "ps", packet)
    high.chksum = 0xbad
    wrong = [bytes(eth / low / high)]
    high.chksum = 0
    none = [bytes(eth / low / high)]
    # complete only over the pseudo header is what an offload would finish
    live.inject(job, "switch", "w0", wrong + none, {},
                {(job, "drop_csum"): 1, (job, "drop_csum_none"): 1})
    more = with_options(v, "w0", "ps", packet)
    # what is left of the packet without its first fragment comes to nobody
    parts = fragments(v, "w0", "ps", packet)
    # behind IPv6's other extension headers nothing is looked for
    passed = 0 if v == 4 else len(more) - 1
    live.inject(job, "switch", "w0", more + parts,
                {("ps", "options"): passed} if passed else {},
                {("other", "options"): len(more) + 1 - passed})


def an_earlier_run_of(job):
    v = family(job)
    at = payload_at(v)
    recorder = Recorder(v, "w0")
    live.leave(job)
    live.join(job)
    for _ in range(2):
        live.round()
    live.leave(job)
    sent, got = recorder.stop()
    for _ in range(4):
        live.join(job)
        live.leave(job)
    live.join(job)
    live.round()

    def kinds(frames, *types):
        return [f for f in frames if f[at + 1] in types]

    gradients = kinds(sent, DATA)
    controls = kinds(sent, T_JOIN, LEAVE)
    # its first JOIN asks what to repeat, and whoever asks that is told
    late = [f for f in controls if f[at + 1] == LEAVE or
            f[at + 12:at + 16] != bytes(4)]
    results = kinds(got, DATA, WELCOME, STATUS)
    same(len(gradients) >= 2 * FRAGMENTS and len(late) >= 2 and
         len(results) > 2 * FRAGMENTS, True)

    def at_hosts():
        n = len(gradients)
        live.inject(job, "host", "ps", gradients + controls,
                    {("ps", "epoch"): n, ("w0", "epoch"): n,
                     ("ps", "nonce"): len(late),
                     ("w0", "nonce"): len(kinds(controls, T_JOIN))})
        live.inject(job, "host", "w0", results, {("w0", "epoch"): len(results)})
    live.during(at_hosts)

    # none of them gets an aggregator
    def at_the_switch():
        n = len(gradients)
        live.inject(job, "switch", "w0", gradients,
                    {("ps", "epoch"): n, ("w0", "epoch"): n},
                    {(job, "stale"): n})
    live.during(at_the_switch)

    def from_the_ps(kind):
        return [frame(v, "ps", "w0", f[at:]) for f in kinds(got, kind)]

    # old answers come through, to who refuses them
    answers = from_the_ps(DATA)
    live.during(lambda: live.inject(job, "switch", "ps", answers,
                                    {("w0", "epoch"): len(answers)}))
    # all that begins or ends a run, too
    for _ in range(3):
        live.taps.send("switch", "w0", gradients + controls)
        live.taps.send("switch", "ps", from_the_ps(WELCOME))
        live.round()
    live.during(at_the_switch)


def an_earlier_run():
    """Everything that w0 sent and got in one run, again in the fifth after it"""
    for job in JOBS:
        an_earlier_run_of(job)


def another_epoch_at_the_switch():
    """It cannot know better: a member gets aggregators by gradients of runs that are
    none, up to its job's quota, until they are old and one is needed.  All that is
    lost by it is help."""
    job, table, quota = 7, 16, 8

    def tool(*words):
        status, text = atp("switch", "switch", *words)
        same(status, 0, text)

    def occupied():
        return live.switch()["occupied"]

    def given_back():
        live.round()
        return not occupied()[job]

    # a new one knows of no run that is over, either
    rack("switch_resize", "aggregators", table, "timeout", 600000)
    tool("job", "replace", job, "ps", ip_of(4, "ps"), "quota", quota,
         *[word for rank in range(ranks(job))
           for word in ("worker", ip_of(4, f"w{rank}"))])
    recorder = Recorder(4, "w0")
    live.round()
    at = payload_at(4)
    sent = next(f[at:] for f in recorder.stop()[0] if f[at + 1] == DATA)
    seq, = struct.unpack_from("!I", sent, 12)
    index, = struct.unpack_from("!I", sent, 28)
    before = occupied()
    same(before, {7: 0, 8: 0})
    e = live.epoch(job)
    epochs = [x & 0xffffffff for x in (e - 1, e + 1, ~e, e ^ FAR)]
    # Fragments that come next, where these will be looked for.  Those for which no
    # aggregator is left get to the PS, which tells the worker.
    following = range(live.info(job).una, live.info(job).una + table)
    n = table - quota
    live.inject(job, "switch", "w0", [
        frame(4, "w0", "ps", data(job, [99] * 350, **good(
            job, epoch=epochs[s % 4], seq=s, flags=0,
            index=(index + s - seq) & 0xffffffff)))
        for s in following], {("ps", "epoch"): n, ("w0", "epoch"): n})
    full = {**before, job: quota}
    same(occupied(), full)
    for _ in range(2):
        live.round()
        same(occupied(), full)
    # nor does the end of a run give them back, but the next one gets them
    live.leave(job)
    live.join(job)
    same(occupied(), full)
    tool("attach", *[word for host in HOSTS for word in ("dev", host)],
         "timeout", 100)
    wait_for(given_back, "the aggregators are given back")
    rack("switch_resize", "aggregators", 1024)
    live.round()


def a_member_that_lies_spoils_its_own_job():
    """What it can do: say that it is a switch.  It touches no other job."""
    job, lie = 7, [99] * 350
    info = live.info(job)

    def inject():
        live.taps.send("host", "ps", [frame(4, "w0", "ps", data(
            job, lie, **good(job, seq=info.una, bitmap=7, flags=SWITCHED)))])

    for j, (_, n) in JOBS.items():
        for rank in range(n - 1):
            live.push(j, rank)
    inject()
    wait_for(lambda: live.info(job).una > info.una, "the lie is the answer")
    for j, (_, n) in JOBS.items():
        live.push(j, n - 1)
    live.serve()
    for rank in range(ranks(8)):
        live.pull(8, rank)
    results = [live.socks[7, rank].recv(6000) for rank in range(ranks(7))]
    # one and the same at every rank
    same(results[0] == results[1] == results[2], True)
    same(list(memoryview(results[0]).cast("i"))[:350], lie)
    live.chunk += 1
    live.round()


def an_end_for_a_reason_that_is_not_known():
    """From the PS's address, to rank 0: a later version may have more of them."""
    job, first = 7, live.socks[7, 0]
    live.taps.send("host", "w0", [frame(4, "ps", "w0", control(
        ABORT, job, epoch=live.epoch(job), fanin=ranks(job), reason=99,
        ranks=FAR))])
    wait_for(lambda: live.info(job).state == FAILED, "end")
    same((live.info(job).reason, live.info(job).ranks), (99, FAR))
    for _ in range(2):
        refused(errno.ECONNABORTED, first.recv, 4)
    live.leave(job)
    live.join(job)
    live.round()


def whose_address_is_forged_without_a_switch():
    """w1's host plays rank 0: who guesses its ticket can end the run, and nothing
    else."""
    job = 7
    info = live.info(job)
    rack("switch_off")

    def forge(*packets):
        live.taps.send("switch", "w1", [frame(4, "w0", "ps", p, via="w1")
                                        for p in packets])

    def from_rank_0(kind, epoch=info.epoch, seq=0):
        return control(kind, job, nonce=5, epoch=epoch, fanin=ranks(job),
                       workers=ranks(job), window=info.window, seq=seq)

    def meanwhile():
        before = live.drops()
        due = {**before, ("ps", "epoch"): before["ps", "epoch"] + 2,
               ("w0", "epoch"): before["w0", "epoch"] + 2,
               ("ps", "nonce"): before["ps", "nonce"] + 3,
               ("w0", "nonce"): before["w0", "nonce"] + 2}
        forge(data(job, LANES, **good(job, epoch=info.epoch ^ FAR)),
              from_rank_0(PING, info.epoch ^ FAR),
              from_rank_0(PING), from_rank_0(LEAVE),
              from_rank_0(T_JOIN), from_rank_0(T_JOIN, seq=FAR))
        wait_for(lambda: live.drops() == due, "epoch and nonce are refused")
    live.round(meanwhile)

    # they are counted: one more for each JOIN of the rank
    forge(*[from_rank_0(T_JOIN, seq=n) for n in range(1, 40)])
    # rank 1 needs rank 0 and is told, as is rank 2; rank 0 when it sends
    for sender, told in ((1, (1, 2)), (0, (0,))):
        live.push(job, sender)
        for rank in told:
            wait_for(lambda r=rank: live.info(job, r).state == FAILED, "end")
            i = live.info(job, rank)
            same((i.reason, i.ranks), (REJOIN, 1))
    for rank in range(ranks(8)):
        live.push(8, rank)
    live.serve()
    for rank in range(ranks(8)):
        live.pull(8, rank)


TESTS = (
    fields_of_gradients_at_the_ps,
    fields_of_answers_at_a_worker,
    control_packets,
    another_epoch,
    strangers,
    a_worker_plays_another,
    a_worker_plays_the_ps,
    another_udp_port,
    what_ip_can_add,
    what_the_stack_drops,
    a_length_of_udp_that_lies,
    no_checksum,
    tags_of_vlans_that_are_not_there,
    tags_without_a_vlan,
    tags_of_a_vlan_that_is_there,
    fields_at_the_switch,
    senders_at_the_switch,
    a_member_of_another_job_at_the_switch,
    checksums_and_ip_at_the_switch,
    an_earlier_run,
    another_epoch_at_the_switch,
    a_member_that_lies_spoils_its_own_job,
    an_end_for_a_reason_that_is_not_known,
    # the last: it leaves no switch, and no run of job 7
    whose_address_is_forged_without_a_switch,
)


def main():
    global live    # pylint: disable=global-statement
    subprocess.run(["modprobe", "atp"], check=True)
    live = Live()
    try:
        return run(TESTS)
    finally:
        live.close()


if __name__ == "__main__":
    sys.exit(main())
