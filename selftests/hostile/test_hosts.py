#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Forged, stale and broken packets at the PS and at a worker.

Each is counted under its reason, exactly as often as it came, and changes no
sum, no window and no aggregator; ../socket/test_packets.py looks closer at
single fields.
"""
import errno
import sys

# first, as it knows where ../lib is
from forged import (FAR, LANES, UNDEFINED, answer, epochs, family, for_each_job,
                    good, gradients, live, ranks, run)
from atptest import (ABORT, ACK, DATA, ECN, EDGE, FAILED, FLOAT32, INT32, LAST,
                     LEAVE, MCAST, OVERFLOW, PING, PONG, RAW, RESEND, STATUS, SUM,
                     SWITCHED, T_JOIN, WELCOME, control, data, header, refused,
                     same, wait_for)
from live import JOBS
from rack import rack
from wire import fragments, frame, layers, lying, tagged, with_options

REJOIN = 3
ETHERTYPE, ETH_P_8021Q = {4: 0x0800, 6: 0x86dd}, 0x8100


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
        # ranks that the job does not have
        *[(control(kind, job, reason=1, ranks=r, **fields), "its bitmap")
          for kind in (WELCOME, ABORT, STATUS)
          for r in (1 << ranks(job), FAR, 0xffffffff)],
        (control(STATUS, job, seq=live.info(job).nxt + 1000, **fields),
         "unsent")])


@for_each_job
def another_epoch(job):
    """The PS tells the worker, for which that is news of another run, too."""
    packets = [frame(family(job), "w0", "ps", packet)
               for x in epochs(job) for packet in (
                   *gradients(job, epoch=x),
                   control(PING, job, epoch=x, fanin=ranks(job)))]
    live.inject(job, "host", "ps", packets, {
        (host, "epoch"): len(packets) for host in ("ps", "w0")})
    at_worker(job, [(packet, "epoch") for x in epochs(job) for packet in (
        *answers(job, epoch=x),
        control(ABORT, job, epoch=x, reason=1),
        control(STATUS, job, epoch=x), control(PONG, job, epoch=x))])


def answers(job, **fields):
    """Results, a request for what is not in integers, and a sum of that"""
    return [data(job, LANES, **answer(job, **fields)),
            *[data(job, LANES, **answer(job, flags=ACK | LAST | more, **fields))
              for more in (MCAST, ECN, OVERFLOW)],
            data(job, [], **answer(job, flags=ACK | OVERFLOW, **fields)),
            data(job, LANES, **answer(job, flags=ACK | LAST | RAW,
                                      dtype=FLOAT32, **fields))]


def from_worker(job):
    """Right in all but who it is from"""
    f = {"fanin": ranks(job), "epoch": live.epoch(job)}
    return [*gradients(job),
            *[control(kind, job, nonce=5, **f)
              for kind in (T_JOIN, LEAVE, PING)],
            data(job, LANES, **good(job, bitmap=3, flags=SUM))]


def from_ps(job):
    f = {"fanin": ranks(job), "epoch": live.epoch(job)}
    return [*answers(job), *[control(kind, job, reason=1, **f)
                             for kind in (WELCOME, ABORT, STATUS, PONG)]]


@for_each_job
def strangers(job):
    for who in ("stranger", "w2") if job == 8 else ("stranger",):
        at_ps(job, [(p, "stranger") for p in from_worker(job)], src=who)
        at_worker(job, [(p, "stranger") for p in from_ps(job)], src=who)


@for_each_job
def a_worker_plays_another(job):
    """Rank 0's packets from the address of rank 1"""
    *packets, _ = from_worker(job)      # in the last is rank 1
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
def no_checksum(job):
    """IPv6 has no packets without; what IPv4 lets in we do not."""
    if family(job) == 6:
        return
    for where, src, packets in (("ps", "w0", from_worker(job)),
                                ("w0", "ps", from_ps(job))):
        live.inject(job, "host", where, [
            frame(4, src, where, p, chksum=0) for p in packets],
            {(where, "checksum"): len(packets)})


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
        ranks=5))])
    wait_for(lambda: live.info(job).state == FAILED, "end")
    same((live.info(job).reason, live.info(job).ranks), (99, 5))
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
    a_member_that_lies_spoils_its_own_job,
    an_end_for_a_reason_that_is_not_known,
    # the last: it leaves no switch, and no run of job 7
    whose_address_is_forged_without_a_switch,
)

if __name__ == "__main__":
    sys.exit(run(TESTS))
