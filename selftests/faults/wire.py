# SPDX-License-Identifier: GPL-2.0
"""Frames as they are on the wire: held back, captured, injected, checked."""

import collections
import os
import socket
import struct
import sys

sys.path.insert(
    0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib")
)
from atptest import (  # noqa: E402
    ACK, DATA, PORT, RAW, internet_sum, run, wait_for,
)
from rack import inside  # noqa: E402

ETH_P_ALL = 3
SOL_PACKET = 263
PACKET_QDISC_BYPASS = 20
SO_RCVBUFFORCE = 33
ETH_LEN = 14
# What is sent at once fits into the ring of a veth.
BATCH = 64

Frame = collections.namedtuple(
    "Frame", "raw v6 l4 kind ack values job seq bitmap elements"
)


def parse(raw):
    """An ATP frame, or None."""
    proto = struct.unpack_from("!H", raw, 12)[0]
    if proto == 0x0800 and raw[23] == socket.IPPROTO_UDP:
        v6, l4 = False, ETH_LEN + 20
    elif proto == 0x86DD and raw[20] == socket.IPPROTO_UDP:
        v6, l4 = True, ETH_LEN + 40
    else:
        return None
    if struct.unpack_from("!H", raw, l4 + 2)[0] != PORT:
        return None
    _, kind, flags, job, _, seq, bitmap = struct.unpack_from(
        "!BBHIIII", raw, l4 + 8
    )
    elements = struct.unpack_from("!H", raw, l4 + 8 + 32)[0]
    return Frame(raw, v6, l4, kind, bool(flags & ACK), bool(flags & RAW), job,
                 seq, bitmap, elements)


def receiver(frame):
    """The last byte of the address that it is for."""
    return frame.raw[ETH_LEN + (39 if frame.v6 else 19)]


def checksums_hold(frame):
    """Is every checksum in the frame there, complete and right?"""
    raw, l4 = frame.raw, frame.l4
    length, check = struct.unpack_from("!HH", raw, l4 + 4)
    if frame.v6:
        addresses = raw[ETH_LEN + 8:ETH_LEN + 40]
    else:
        addresses = raw[ETH_LEN + 12:ETH_LEN + 20]
        if internet_sum(raw[ETH_LEN:l4]):
            return False
    if not check or l4 + length != len(raw):
        return False
    pseudo = addresses + struct.pack("!HH", socket.IPPROTO_UDP, length)
    return not internet_sum(pseudo + raw[l4:])


class Port:
    """A device of a host, below its queueing discipline."""

    def __init__(self, host, dev):
        self.host, self.dev = host, dev
        self.ways = set()
        # GRO makes one of several frames before anybody sees them
        run("ip", "-n", f"atp-{host}", "link", "set", dev,
            "gro_max_size", "1")
        with inside(host):
            self.sock = socket.socket(
                socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)
            )
        self.sock.setsockopt(SOL_PACKET, PACKET_QDISC_BYPASS, 1)
        self.sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 32 << 20)
        self.sock.bind((dev, ETH_P_ALL))
        self.sock.setblocking(False)

    def close(self):
        self.sock.close()

    def frames(self, incoming=None):
        """The ATP frames that have passed since the last call."""
        found = []
        while True:
            try:
                raw, address = self.sock.recvfrom(9000)
            except BlockingIOError:
                return found
            came_in = address[2] != socket.PACKET_OUTGOING
            frame = parse(raw)
            if frame and incoming in (None, came_in):
                if frame.kind == DATA:
                    self.ways.add(came_in)
                found.append(frame)

    def send(self, raw):
        """Not through the queueing discipline: what holds the host's own
        packets back does not hold this one."""
        self.sock.send(raw)

    def send_all(self, many, received):
        """received() tells how many frames the other end has taken.  A device
        without NAPI takes them into a CPU's backlog, which is drained when
        ksoftirqd gets to it: what does not fit there is lost."""
        for at in range(0, len(many), BATCH):
            batch = many[at:at + BATCH]
            target = received() + len(batch)
            for raw in batch:
                self.send(raw)
            wait_for(lambda t=target: received() >= t and not backlog(),
                     "room in the ring")


def _table(name):
    """A file of /proc/net, of the namespace that this thread is in."""
    with open(f"/proc/thread-self/net/{name}", encoding="ascii") as f:
        return f.read().splitlines()


def backlog():
    """Frames that wait for the softirq of any CPU."""
    return sum(int(line.split()[11], 16) for line in _table("softnet_stat"))


def received(host, dev):
    """Frames that a device has taken."""
    with inside(host):
        for line in _table("dev"):
            name, _, rest = line.partition(":")
            if name.strip() == dev:
                return int(rest.split()[1])
    raise AssertionError(f"no {dev}")


IP4_REFUSED = ("InHdrErrors", "InAddrErrors", "InUnknownProtos", "InDiscards")
IP6_REFUSED = ("Ip6InHdrErrors", "Ip6InAddrErrors", "Ip6InNoRoutes",
               "Ip6InUnknownProtos", "Ip6InTruncatedPkts", "Ip6InDiscards",
               "Udp6InErrors")


def refused(host, v6):
    """Packets that IP and UDP of a host have thrown away."""
    with inside(host):
        if v6:
            values = dict(line.split() for line in _table("snmp6"))
            return sum(int(values[name]) for name in IP6_REFUSED)
        lines = [line.split() for line in _table("snmp")]
    values = {}
    for names, numbers in zip(lines[::2], lines[1::2]):
        for name, number in zip(names[1:], numbers[1:]):
            values[names[0] + name] = int(number)
    return values["Udp:InErrors"] + sum(
        values["Ip:" + name] for name in IP4_REFUSED
    )
