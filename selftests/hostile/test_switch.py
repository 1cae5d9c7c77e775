#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Forged, stale and broken packets at the switch, while jobs run through it.

What it refuses it counts under its reason and lets nobody see, what it leaves
alone the hosts refuse; no sum, no window and no aggregator changes.  The tests of
the switch by itself (../switch) look closer at single fields.
"""
import struct
import subprocess
import sys

# first, as it knows where ../lib is
from forged import (FAR, LANES, UNDEFINED, answer, epochs, family, for_each_job,
                    good, gradients, live, ranks, run)
from atptest import (ABORT, ACK, DATA, EDGE, INT32, LAST, LEAVE, MCAST, OVERFLOW,
                     PING, PONG, RAW, STATUS, SUM, T_JOIN, WELCOME, control, data,
                     header, same, wait_for)
from live import FRAGMENTS, JOBS, SERVED
from rack import rack
from wire import (Recorder, fragments, frame, in_vlan, layers, payload_at,
                  priority_tagged, with_options)


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
def fields(job):
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
def senders(job):
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
def a_member_of_another_job(job):
    """w2 is of job 7 only."""
    if job == 7:
        return
    live.inject(job, "switch", "w2", [
        frame(6, "w2", "ps", data(8, LANES, **good(8))),
        frame(6, "w0", "ps", data(8, LANES, **good(8)), via="w2"),
        frame(6, "ps", "w0", data(8, LANES, **answer(8)), via="w2")], {},
        {(8, "drop_stranger"): 1, (8, "drop_port"): 2})


@for_each_job
def checksums_and_ip(job):
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
    if job != SERVED:
        live.overflow(job)
    live.leave(job)
    sent, got = recorder.stop()
    for _ in range(4):
        live.join(job)
        live.leave(job)
    live.join(job)
    live.round()

    def kinds(frames, *types):
        return [f for f in frames if f[at + 1] in types]

    pushed = kinds(sent, DATA)
    controls = kinds(sent, T_JOIN, LEAVE)
    # its first JOIN asks what to repeat, and whoever asks that is told
    late = [f for f in controls if f[at + 1] == LEAVE or
            f[at + 12:at + 16] != bytes(4)]
    results = kinds(got, DATA, WELCOME, STATUS)
    same(len(pushed) >= 2 * FRAGMENTS and len(late) >= 2 and
         len(results) > 2 * FRAGMENTS, True)

    def flagged(frames, flag):
        return [f for f in frames if f[at + 1] == DATA and
                struct.unpack_from("!H", f, at + 2)[0] & flag]

    if job != SERVED:
        # values as they are, asked for and sent, and the sum of those
        same([bool(flagged(*those)) for those in (
            (got, OVERFLOW), (sent, RAW), (got, RAW))], [True] * 3)

    def at_hosts():
        n = len(pushed)
        live.inject(job, "host", "ps", pushed + controls,
                    {("ps", "epoch"): n, ("w0", "epoch"): n,
                     ("ps", "nonce"): len(late),
                     ("w0", "nonce"): len(kinds(controls, T_JOIN))})
        live.inject(job, "host", "w0", results, {("w0", "epoch"): len(results)})
    live.during(at_hosts)

    # none of them gets an aggregator
    def at_the_switch():
        n = len(pushed)
        live.inject(job, "switch", "w0", pushed,
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
        live.taps.send("switch", "w0", pushed + controls)
        live.taps.send("switch", "ps", from_the_ps(WELCOME))
        live.round()
    live.during(at_the_switch)


def an_earlier_run():
    """Everything that w0 sent and got in one run, again in the fifth after it"""
    for job in JOBS:
        an_earlier_run_of(job)


@for_each_job
def another_epoch(job):
    """What the PS has said tells the switch which run goes on."""
    frames = [frame(family(job), "w0", "ps", p)
              for x in epochs(job) for p in gradients(job, epoch=x)]
    n = len(frames)
    live.inject(job, "switch", "w0", frames,
                {("ps", "epoch"): n, ("w0", "epoch"): n}, {(job, "stale"): n})


def another_epoch_at_a_new_switch():
    """It came when the run had begun, and learns from results."""
    rack("switch_resize", "aggregators", 1024)
    live.round()
    another_epoch()


TESTS = (
    tags_without_a_vlan,
    tags_of_a_vlan_that_is_there,
    fields,
    senders,
    a_member_of_another_job,
    checksums_and_ip,
    an_earlier_run,
    another_epoch,
    another_epoch_at_a_new_switch,
)

if __name__ == "__main__":
    sys.exit(run(TESTS))
