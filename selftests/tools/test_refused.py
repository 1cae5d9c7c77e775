#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The dissector and packets that nobody may send: it gives the same reason as
a host that drops them, and sees checksums that are wrong."""

import os
import random
import struct
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
import pcap  # noqa: E402
from pcap import TOP, tshark  # noqa: E402
from rack import run  # noqa: E402

REFUSE = os.path.join(TOP, "build/selftests/tools/refuse")
# seed and number of random packets
SEED, MANY = 4797, 1500
NAMES = ("atpgrad.refused", "_ws.expert.message", "frame.protocols")
GOOD = bytes.fromhex("010100800000000700000001000000000000000100000000"
                     "02000100000000000004ffff01000000020000000300000004000000")


def expect(got, want):
    if got != want:
        raise AssertionError(f"{got!r}, not {want!r}")


def fold(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def frame(payload, v6=False, check=None):
    """From a worker to the PS; with a right checksum, unless one is given."""
    length = 8 + len(payload)
    if v6:
        addresses = bytes(15) + b"\1" + bytes(15) + b"\2"
        ip = struct.pack("!IHBB", 6 << 28, length, 17, 64) + addresses
        ethertype = 0x86DD
    else:
        addresses = bytes((10, 0, 0, 1, 10, 0, 0, 254))
        ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + length, 0, 0, 64, 17, 0)
        ip = ip[:10] + struct.pack("!H", 0xFFFF - fold(ip + addresses))
        ip += addresses
        ethertype = 0x0800
    udp = struct.pack("!HHHH", 5000, pcap.PORT, length, 0)
    if check is None:
        check = 0xFFFF - fold(addresses + struct.pack("!HH", 17, length) +
                              udp + payload) or 0xFFFF
    udp = udp[:6] + struct.pack("!H", check)
    return bytes(12) + struct.pack("!H", ethertype) + ip + udp + payload


def dissect(frames):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "frames.pcap")
        pcap.write(path, frames)
        return tshark(path, NAMES)


def vectors():
    """What engine, switch and sockets are tested with, too."""
    with open(os.path.join(TOP, "selftests/vectors/packets"),
              encoding="ascii") as f:
        for line in f:
            words = line.split()
            if len(words) == 5 and words[0] not in ("#", "job"):
                # an empty payload is no packet to dissect
                if words[4] != "-":
                    yield bytes.fromhex(words[4])


def mutants(packets):
    """With some other bytes in the header, or another length."""
    dice = random.Random(SEED)
    for _ in range(MANY):
        packet = bytearray(dice.choice(packets))
        for _ in range(dice.randrange(3)):
            at = dice.randrange(min(len(packet), 36))
            packet[at] = dice.choice((0, 1, 2, 4, 32, 64, 255,
                                      dice.randrange(256)))
        if not dice.randrange(4):
            packet = packet[:dice.randrange(1, len(packet) + 1)]
        yield bytes(packet)


def it_refuses_what_a_host_refuses():
    packets = list(vectors())
    expect(len(packets) > 50, True)
    packets += mutants(packets)
    done = subprocess.run([REFUSE], text=True, check=True,
                          input="".join(p.hex() + "\n" for p in packets),
                          stdout=subprocess.PIPE)
    wanted = done.stdout.split()
    print("#", {reason: wanted.count(reason) for reason in set(wanted)})
    # every reason that a header can be
    expect(set(wanted), {"ok", "short", "version", "type", "flags", "length",
                         "dtype", "fanin", "bitmap", "elements"})
    for v6 in (False, True):
        found = dissect([frame(packet, v6) for packet in packets])
        expect(len(found), len(packets))
        for packet, want, (refused, _, protocols) in zip(packets, wanted,
                                                         found):
            expect(protocols[0].endswith("udp:atpgrad"), True)
            expect((packet.hex(), *refused),
                   (packet.hex(), *([] if want == "ok" else [want])))


def it_sees_wrong_checksums():
    good = frame(GOOD)
    flipped = good[:-1] + bytes((good[-1] ^ 1,))
    odd = GOOD[:35]
    found = dissect([good, flipped, frame(GOOD, True),
                     frame(GOOD, True, 0x1234), frame(GOOD, False, 0),
                     frame(odd), frame(odd, False, 1)])
    experts = [line[1] for line in found]
    wrong = ["UDP checksum is wrong, or left to an offload"]
    expect(experts, [[], wrong, [], wrong, ["no UDP checksum"],
                     ["less than a header"], wrong + ["less than a header"]])


def truncated_captures_do_not_stop_it():
    """Each length of a packet, with lengths that say so and that do not."""
    whole = frame(GOOD)
    frames = [frame(GOOD[:n]) for n in range(1, len(GOOD))]
    frames += [whole[:n] for n in range(43, len(whole))]
    for line in dissect(frames):
        expect([m for m in line[1] if "Lua" in m or "Malformed" in m], [])


if __name__ == "__main__":
    sys.exit(run((
        it_refuses_what_a_host_refuses,
        it_sees_wrong_checksums,
        truncated_captures_do_not_stop_it,
    )))
