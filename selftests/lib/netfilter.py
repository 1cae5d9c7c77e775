# SPDX-License-Identifier: GPL-2.0
"""Rules of a host, in the words of nf_tables and nfnetlink_queue: there is no
tool for them in the machine."""
import socket
import struct

from atptest import LIMIT, attr, same

# Messages, attributes and registers
NEW_TABLE, DEL_TABLE, NEW_CHAIN, NEW_RULE = (10 << 8 | n for n in (0, 2, 3, 6))
LOCAL_IN, DROP, ACCEPT = 1, 0, 1
INVALID, KNOWN = 1, 2 | 4


def be(*values):
    """Attributes 1, 2 and so on: numbers, text, or what is in a nest"""
    found = b""
    for n, v in enumerate(values, 1):
        if isinstance(v, int):
            v = struct.pack("!i", v)
        elif isinstance(v, str):
            v = v.encode() + b"\0"
        elif isinstance(v, tuple):
            n, v = n | 0x8000, be(*v)
        if v is not None:
            found += attr(n, v)
    return found


def bytes_are(base, at, value):
    """Of the network header (1) or of the one behind it (2)"""
    return (("payload", (1, base, at, len(value))),
            ("cmp", (1, 0, (value,))))


def state_is(bits):
    return (("ct", (1, 0)),
            ("bitwise", (1, 1, 4, (struct.pack("I", bits),), (bytes(4),))),
            ("cmp", (1, 1, (bytes(4),))))


def verdict(code):
    return (("immediate", (0, (None, (code,)))),)


def rules(*changes):
    """One batch of (message, attributes) for IPv4"""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12) as s:
        s.bind((0, 0))
        packet = b""
        for n, (kind, body) in enumerate(
                ((16, b""), *changes, (17, b"")), 1):
            family, subsystem = (0, 10) if kind in (16, 17) else (2, 0)
            # create, append; it is only the last that is answered
            flags = 0xc01 | (4 if n == len(changes) + 1 else 0)
            body = struct.pack("!BBH", family, 0, subsystem) + body
            packet += struct.pack("IHHII", 16 + len(body), kind, flags, n,
                                  0) + body
        s.send(packet)
        answer = s.recv(65536)
        same(struct.unpack_from("i", answer, 16)[0], 0, "rules")


def filter_input(*expressions):
    """A chain for what comes in; each rule is a tuple of expressions."""
    rules((NEW_TABLE, be("t")),
          (NEW_CHAIN, be("t", None, "c", (LOCAL_IN, 0), ACCEPT, None,
                         "filter")),
          *[(NEW_RULE, be("t", "c", None, b"".join(
              attr(1 | 0x8000, be(*e)) for e in sum(rule, ()))))
            for rule in expressions])


class Verdicts:
    """A process that is asked about packets: netfilter's queue 0, for bursts as
    they are"""
    CONFIG, VERDICT, BURSTS = 3 << 8 | 2, 3 << 8 | 1, 1 << 2

    def __init__(self):
        self.s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12)
        self.s.bind((0, 0))
        self.s.settimeout(LIMIT)
        # bind; copy nothing but what is about the packet
        self.say(self.CONFIG, attr(1, struct.pack("!BBH", 1, 0, 2)))
        self.say(self.CONFIG, attr(2, struct.pack("!IB", 0, 1)) +
                 attr(4, struct.pack("!I", self.BURSTS)) +
                 attr(5, struct.pack("!I", self.BURSTS)))

    def say(self, kind, body):
        body = struct.pack("!BBH", 2, 0, 0) + body
        flags = 5 if kind == self.CONFIG else 1     # with an answer or none
        self.s.send(struct.pack("IHHII", 16 + len(body), kind, flags, 1, 0) +
                    body)
        if kind == self.CONFIG:
            same(struct.unpack_from("i", self.s.recv(4096), 16)[0], 0, "queue")

    def accept(self):
        """The next one"""
        # behind both headers the first attribute has its number
        number, = struct.unpack_from("!I", self.s.recv(65536), 24)
        self.say(self.VERDICT, attr(2, struct.pack("!II", ACCEPT, number)))
