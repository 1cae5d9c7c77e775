# SPDX-License-Identifier: GPL-2.0
"""Frames as no party of ATP makes them, and a way to send them.

The rack is that of ../lib/rack.sh, from where addresses are known.  Each host
has one link, so there are two places to put a frame: what the switch sends out
of a host's port arrives at that host, what the host sends out of eth0 arrives
at the switch.
"""
import socket
import struct

# pylint: disable=no-name-in-module
from scapy.layers.inet import IP, UDP, IPOption_NOP, IPOption_Router_Alert
from scapy.layers.inet6 import (HBHOptUnknown, IPv6, IPv6ExtHdrDestOpt,
                                IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, PadN)
from scapy.layers.l2 import Dot1AD, Dot1Q, Ether

from atptest import DATA, PORT
from rack import inside

ETH_P_ALL, SO_RCVBUFFORCE = 3, 33
# of ATP's header, and of what follows it in a control packet
HEADER, CONTROL = 36, 32
NUMBER = {"w0": 1, "w1": 2, "w2": 3, "stranger": 77, "ps": 254}


def ip_of(family, host):
    return f"10.0.0.{NUMBER[host]}" if family == 4 else f"fd00::{NUMBER[host]:x}"


def mac_of(host):
    return f"02:00:00:00:00:{NUMBER[host]:02x}"


def layers(family, src, dst, payload, via=None, **udp):
    """(Ethernet, IP, UDP with payload); via: whose interface it leaves"""
    eth = Ether(src=mac_of(via or src), dst=mac_of(dst))
    source, to = ip_of(family, src), ip_of(family, dst)
    if family == 4:
        low = IP(src=source, dst=to, tos=2, flags="DF")
    else:
        low = IPv6(src=source, dst=to, tc=2)
    return eth, low, UDP(**{"sport": PORT, "dport": PORT, **udp}) / payload


def frame(family, src, dst, payload, **more):
    """As the kernel of src would send it"""
    eth, low, high = layers(family, src, dst, payload, **more)
    return bytes(eth / low / high)


def udp_bytes(low, high):
    """What IP carries, its checksum right"""
    whole = bytes(low / high)
    return whole[len(low):]


def lying(family, src, dst, payload, more):
    """UDP says so many bytes more than there are, and has the checksum of that: of
    zeros behind them, or of what there is before the end"""
    eth, low, _ = layers(family, src, dst, payload)
    size = len(payload) + more
    _, _, told = layers(family, src, dst, payload[:size].ljust(size, b"\0"))
    inner = udp_bytes(low, told)[:8 + len(payload)] + payload[size:]
    low.setfieldval("proto" if family == 4 else "nh", 17)
    return bytes(eth / low / inner)


def fragments(family, src, dst, payload):
    """The same packet in two"""
    eth, low, high = layers(family, src, dst, payload)
    inner = udp_bytes(low, high)
    if family == 4:
        first = IP(src=low.src, dst=low.dst, proto=17, flags="MF", id=4711)
        last = IP(src=low.src, dst=low.dst, proto=17, frag=4, id=4711)
        return [bytes(eth / first / inner[:32]), bytes(eth / last / inner[32:])]
    return [bytes(eth / IPv6(src=low.src, dst=low.dst, nh=44) /
                  IPv6ExtHdrFragment(nh=17, m=more, offset=at, id=4711) / part)
            for more, at, part in ((1, 0, inner[:32]), (0, 4, inner[32:]))]


def with_options(family, src, dst, payload):
    """A frame for each kind of option or extension header that hosts let in"""
    eth, low, high = layers(family, src, dst, payload)
    if family == 4:
        return [bytes(eth / IP(src=low.src, dst=low.dst, options=options) / high)
                for options in ([IPOption_NOP()] * 4, [IPOption_NOP()] * 40,
                                [IPOption_Router_Alert()])]
    return [bytes(eth / low / extension / high) for extension in (
        IPv6ExtHdrHopByHop(options=[PadN(optdata=bytes(4))]),
        IPv6ExtHdrHopByHop(options=[HBHOptUnknown(otype=0x1e,
                                                  optdata=bytes(4))]),
        IPv6ExtHdrDestOpt(options=[PadN(optdata=bytes(4))]),
        IPv6ExtHdrFragment(nh=17, id=4712))]


def in_vlan(family, src, dst, payload, vlan):
    """With one tag, and with another before"""
    eth, low, high = layers(family, src, dst, payload)
    return [bytes(eth / tags / low / high)
            for tags in (Dot1Q(vlan=vlan), Dot1Q(vlan=0) / Dot1Q(vlan=vlan))]


def tagged(family, src, dst, payload):
    """In VLANs, and with two tags"""
    eth, low, high = layers(family, src, dst, payload)
    return in_vlan(family, src, dst, payload, 5) + [
        bytes(eth / tags / low / high)
        for tags in (Dot1Q(vlan=4094), Dot1Q(vlan=5) / Dot1Q(vlan=6),
                     Dot1AD(vlan=7))]


def priority_tagged(family, src, dst, payload):
    """In up to five tags of VLAN 0, which are none to a host"""
    eth, low, high = layers(family, src, dst, payload)
    return [bytes(eth / tags / low / high)
            for tags in (Dot1Q(vlan=0, prio=5), Dot1AD(vlan=0),
                         Dot1Q(vlan=0) / Dot1Q(vlan=0),
                         Dot1Q(vlan=0) / Dot1AD(vlan=0) / Dot1Q(vlan=0) /
                         Dot1Q(vlan=0) / Dot1Q(vlan=0))]


class Taps:
    """A raw socket for each end of each link"""
    def __init__(self, hosts):
        self.out = {}
        for host in hosts:
            for where, space, device in (("host", "switch", host),
                                         ("switch", host, "eth0")):
                with inside(space):
                    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
                    s.bind((device, 0))
                self.out[where, host] = s

    def send(self, where, host, frames):
        """where: "host": to it; "switch": from it"""
        for one in frames:
            self.out[where, host].send(one)


def _length(packet):
    """Of the first packet in it, by its header"""
    elements, = struct.unpack_from("!H", packet, 32)
    return HEADER + (4 * (elements + elements % 2) if packet[1] == DATA else
                     CONTROL)


def payload_at(family):
    """Where in a frame ATP's header begins"""
    return 42 if family == 4 else 62


def _cut(family, merged):
    """The frames that GRO has made one of"""
    at = payload_at(family)
    eth, rest = Ether(merged[:14]), merged[at:]
    if family == 4:
        low = IP(merged[14:at - 8])
        del low.len, low.chksum
    else:
        low = IPv6(merged[14:at - 8])
        del low.plen
    while rest:
        n = _length(rest)
        yield bytes(eth / low / UDP(sport=PORT, dport=PORT) / rest[:n])
        rest = rest[n:]


class Recorder:
    """Frames to the ATP port that a host sends and gets"""
    def __init__(self, family, host):
        self.family = family
        with inside(host):
            self.s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                                   socket.htons(ETH_P_ALL))
            self.s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20)
            self.s.bind(("eth0", ETH_P_ALL))
        self.s.setblocking(False)

    def stop(self):
        """([sent], [received])"""
        sent, got = [], []
        at = payload_at(self.family)
        kind = b"\x08\0" if self.family == 4 else b"\x86\xdd"
        while True:
            try:
                data, address = self.s.recvfrom(65536)
            except BlockingIOError:
                break
            if data[12:14] != kind or len(data) < at + HEADER:
                continue
            if struct.unpack_from("!H", data, at - 6)[0] == PORT:
                outgoing = address[2] == socket.PACKET_OUTGOING
                (sent if outgoing else got).extend(_cut(self.family, data))
        self.s.close()
        return sent, got
