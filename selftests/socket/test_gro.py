#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""What GRO has merged is taken as a burst; a packet with a flipped bit is not merged,
and UDP drops it, wherever it comes among the others."""
import os
import random
import socket
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../lib"))
from atptest import (  # noqa: E402
    PORT, internet_sum, main, run, same, test, wait_for,
)
from burst import FAR, PS, PsHere, address, inside  # noqa: E402

TURNS, PACKETS = 30, 10
# GRO keeps what it has merged for so long: longer than a slow machine needs for
# several packets
NANOSECONDS = 50_000_000


def merge(cable):
    """A veth's end does that with a queue of its own, which what may be segments does
    not go through."""
    with inside(cable.far):
        run("ethtool", "-K", "far", "tso", "off")
    run("ethtool", "-K", "near", "gro", "on")
    run("unshare", "-m", "sh", "-c", "mount -t sysfs none /sys && "
        f"echo {NANOSECONDS} > /sys/class/net/near/gro_flush_timeout")


def in_csum_errors(family):
    """Those of the stack"""
    if family == 6:
        with open("/proc/thread-self/net/snmp6", encoding="ascii") as f:
            return int(dict(line.split() for line in f)["Udp6InCsumErrors"])
    with open("/proc/thread-self/net/snmp", encoding="ascii") as f:
        names, values = (line.split() for line in f if line.startswith("Udp:"))
    return int(dict(zip(names, values))["InCsumErrors"])


class Wire:
    """Sends UDP packets as they are, from the other end to the PS."""
    def __init__(self, cable):
        kind, self.to = socket.AF_INET, address(cable.family, PS)
        if cable.family == 6:
            kind = socket.AF_INET6
        with inside(cable.far):
            self.s = socket.socket(kind, socket.SOCK_RAW, socket.IPPROTO_UDP)
        source = address(cable.family, FAR)
        self.s.bind((source, 0))
        self.pseudo = (socket.inet_pton(kind, source) +
                       socket.inet_pton(kind, self.to))

    def packet(self, payload):
        """With a right checksum"""
        length = 8 + len(payload)
        head = struct.pack("!HHH", PORT, PORT, length)
        value = internet_sum(self.pseudo + struct.pack("!II", length, 17) +
                             head + bytes(2) + payload) or 0xffff
        return head + struct.pack("!H", value) + payload

    def send(self, packet):
        self.s.sendto(packet, (self.to, 0))


def flipped(packet, bit):
    changed = bytearray(packet)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def a_flipped_bit(family):
    r = PsHere(family)
    merge(r)
    wire = Wire(r)
    lanes = r.far_lanes(PACKETS)
    rng = random.Random(family)
    bursts = 0
    for turn in range(TURNS):
        first = PACKETS * turn
        good = [wire.packet(p) for p in r.cut(lanes, first=first)]
        broken = turn % PACKETS
        # anywhere behind the UDP header
        bit = rng.randrange(64, 8 * len(good[broken]))
        r.quiet()
        then, errors = r.counted(), in_csum_errors(family)
        for k, packet in enumerate(good):
            wire.send(flipped(packet, bit) if k == broken else packet)
        wait_for(lambda t=then: r.counted()["in_packets"] - t["in_packets"]
                 == PACKETS - 1, "the others")
        wait_for(lambda e=errors: in_csum_errors(family) - e == 1,
                 "dropped by UDP")
        now = r.counted()
        bursts += now.pop("in_bursts") - then.pop("in_bursts")
        same({k: n - then[k] for k, n in now.items() if n != then[k]},
             {"in_packets": PACKETS - 1}, "counted here")
        wire.send(good[broken])
        r.finish(lanes, first=first)
    print(f"# {bursts} bursts in {TURNS} turns")
    same(bursts > 0, True, "merged")


@test
def a_flipped_bit_among_packets():
    a_flipped_bit(4)


@test
def a_flipped_bit_among_packets_by_ipv6():
    a_flipped_bit(6)


main()
