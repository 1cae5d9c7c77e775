#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""What no longer fits its path, and who says so.

An ICMP error that quotes a fragment of the run ends it, as does a device or
route that takes less; any other changes nothing, whatever IP makes of it.
"""
import errno
import json
import os
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(HERE, "../lib"))
# pylint: disable=wrong-import-position
from scapy.layers.inet import ICMP, IP
from scapy.layers.inet6 import ICMPv6PacketTooBig, IPv6
from scapy.layers.l2 import Ether

from atptest import (ACK, E_JOB, E_RANKS, E_REASON, E_TYPE, EV_ENDED,
                     EV_FAILED, FAILED, JOIN, PING, SOL_ATP, Info, Netlink,
                     control, data, refused, same, wait_for)
from live import JOBS, LANES, SERVED, Live
from rack import inside, run
from wire import frame, ip_of, layers, mac_of

SMALL = 1300
LEFT, MTU = 1, 8    # enum atp_reason
FAR = 1 << 31

live = None


def quoting(family, to, quoted, mtu=SMALL):
    """An error that comes to that host: this packet does not fit"""
    eth = Ether(src=mac_of("stranger"), dst=mac_of(to))
    by, to = ip_of(family, "stranger"), ip_of(family, to)
    if family == 4:
        return bytes(eth / IP(src=by, dst=to) /
                     ICMP(type=3, code=4, nexthopmtu=mtu) / quoted)
    return bytes(eth / IPv6(src=by, dst=to) /
                 ICMPv6PacketTooBig(mtu=mtu) / quoted)


def error(family, src, dst, payload, mtu=SMALL, **udp):
    """The same about a packet of the host's to the ATP port"""
    packet = frame(family, src, dst, payload, **udp)[14:]
    return quoting(family, src, packet[:548], mtu)


def fragment(job, **fields):
    return data(job, [1] * 350, **{
        "epoch": live.epoch(job), "fanin": JOBS[job][1], "flags": 0, **fields})


def route_mtu(family, host, to):
    """Of the exception to the route, if there is one"""
    with inside(host):
        shown = json.loads(subprocess.run(
            ["ip", f"-{family}", "-json", "route", "get", ip_of(family, to)],
            check=True, capture_output=True, text=True).stdout)
    return shown[0].get("metrics", [{}])[0].get("mtu")


def forget():
    for host in ("w0", "ps"):
        with inside(host):
            for family in "46":
                subprocess.run(["ip", f"-{family}", "route", "flush", "cache"],
                               check=True)


def forged_errors_end_no_run():
    """Who is not on the way does not know the epoch."""
    def forge():
        for job, (family, _) in JOBS.items():
            e = live.epoch(job)
            for src, dst, flags in (("w0", "ps", 0), ("ps", "w0", ACK)):
                known = [fragment(job, epoch=x & 0xffffffff, flags=flags)
                         for x in (0, e - 1, e + 1, e ^ FAR)]
                # from the wrong side
                known.append(fragment(job, flags=ACK - flags))
                # of no job, no ATP, too little of it
                wrong = [
                    data(job + 2, [1] * 350, epoch=e, flags=flags),
                    b"\2" + fragment(job, flags=flags)[1:],
                    control(PING, job, epoch=e), b"", bytes(35)]
                frames = [error(family, src, dst, p) for p in known + wrong] + [
                    error(family, src, "stranger",
                          fragment(job, flags=flags)),
                    error(family, src, dst, fragment(job, flags=flags),
                          dport=53)]
                live.inject(job, "host", src, frames,
                            {(src, "its icmp"): len(known) + 1,
                             (src, "icmp"): len(wrong) + 1})
    live.during(forge)
    forget()


def what_ip_believes_ends_no_run():
    """IP takes the word of an error that quotes an answer to a ping."""
    def forge():
        for family in 4, 6:
            for src, dst in (("w0", "ps"), ("ps", "w0")):
                eth, low, _ = layers(family, src, dst, b"")
                quoted = (IP(src=low.src, dst=low.dst) / ICMP(type=0) /
                          bytes(64) if family == 4 else
                          IPv6(src=low.src, dst=low.dst, nh=58) /
                          (b"\x81\0\0\0" + bytes(64)))
                live.taps.send("host", src, [quoting(family, src, quoted)])
                wait_for(lambda f=family, s=src, d=dst:
                         route_mtu(f, s, d) == SMALL, "exception")
    live.during(forge)
    # nor does it keep anybody from joining
    for job in JOBS:
        live.leave(job)
        live.join(job)
    live.round()
    forget()


def fails(job, events, want):
    """want: {rank: (errno, reason, ranks)}; events: what hosts tell of it"""
    for rank, (number, reason, ranks) in want.items():
        s = live.socks[job, rank]
        wait_for(lambda s=s: Info(s).state == FAILED, f"rank {rank} fails")
        info = Info(s)
        same((info.reason, info.ranks), (reason, ranks), f"rank {rank}")
        refused(number, s.recv, 4 * LANES)
        refused(number, s.send, b"1234")
    for host, (kind, reason, ranks) in events.items():
        while True:
            e = host.event()
            same(e is not None, True, "event")
            if (e[E_TYPE], e[E_JOB]) == (kind, job):
                break
        same((e[E_REASON], e[E_RANKS]), (reason, ranks), "event")


def listeners():
    found = []
    for host in ("w0", "ps"):
        with inside(host):
            found.append(Netlink(groups=True))
    return found


def again(job):
    live.leave(job)
    live.join(job)
    live.round()


def worker_fails(job, cause, ranks=1):
    """It knows by itself; the others lose a rank"""
    w0, ps = listeners()
    # what rank 0 does not send is missing
    for rank in range(1, JOBS[job][1]):
        live.push(job, rank)
    cause()
    others = {rank: (errno.ECONNRESET, LEFT, ranks)
              for rank in range(1, JOBS[job][1])}
    fails(job, {w0: (EV_FAILED, MTU, ranks), ps: (EV_ENDED, LEFT, ranks)},
          {0: (errno.EMSGSIZE, MTU, ranks), **others})


def ps_fails(job, cause, ranks):
    w0, ps = listeners()
    cause()
    fails(job, {w0: (EV_FAILED, MTU, ranks), ps: (EV_ENDED, MTU, ranks)},
          {r: (errno.EMSGSIZE, MTU, ranks) for r in range(JOBS[job][1])})


def what_still_fits_ends_no_run():
    def truth():
        for job, (family, _) in JOBS.items():
            live.taps.send("host", "w0", [
                error(family, "w0", "ps", fragment(job), mtu=1499)])
            wait_for(lambda f=family: route_mtu(f, "w0", "ps") == 1499,
                     "exception")
    live.during(truth)
    forget()


def set_mtu(host, mtu):
    with inside(host):
        subprocess.run(["ip", "link", "set", "eth0", "mtu", str(mtu)],
                       check=True)


def a_router_on_the_way_is_believed():
    """It quotes what it was to forward."""
    for job, (family, _) in JOBS.items():
        for src, dst, flags, fail in (("w0", "ps", 0, worker_fails),
                                      ("ps", "w0", ACK, ps_fails)):
            truth = error(family, src, dst, fragment(job, flags=flags))
            fail(job, lambda s=src, t=truth: live.taps.send("host", s, [t]), 1)
            wait_for(lambda f=family, s=src, d=dst:
                     route_mtu(f, s, d) == SMALL, "exception")
            again(job)
    forget()


def the_device_of_a_worker_takes_less():
    for job in JOBS:
        def cause(job=job):
            set_mtu("w0", SMALL)
            live.push(job, 0)
        worker_fails(job, cause)
        refused(errno.EMSGSIZE, live.socks[job, 0].setsockopt, SOL_ATP, JOIN,
                struct.pack("II", job, 0))
        set_mtu("w0", 1500)
        again(job)


def ps_routes(verb, family, ranks, *more):
    with inside("ps"):
        for rank in range(ranks):
            subprocess.run(["ip", f"-{family}", "route", verb,
                            ip_of(family, f"w{rank}"), "dev", "eth0", *more],
                           check=True)


def the_routes_of_the_ps_take_less():
    """Its device still lets in what comes, so that there is an answer."""
    for job, (family, ranks) in JOBS.items():
        def cause(job=job, family=family, ranks=ranks):
            ps_routes("add", family, ranks, "mtu", str(SMALL))
            for rank in range(ranks):
                live.push(job, rank)
            if job == SERVED:
                live.answer(4 * LANES)
        ps_fails(job, cause, (1 << ranks) - 1)
        ps_routes("del", family, ranks)
        again(job)


TESTS = (
    forged_errors_end_no_run,
    what_ip_believes_ends_no_run,
    what_still_fits_ends_no_run,
    a_router_on_the_way_is_believed,
    the_device_of_a_worker_takes_less,
    the_routes_of_the_ps_take_less,
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
