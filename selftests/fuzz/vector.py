#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Turn what fuzz_packet or fuzz_peers has found into vectors (../vectors).

usage: vector.py packet|peers FILE NAME

Prints lines for vectors/packets.  HOST and SWITCH are "?": what is due has to be
filled in.  The tests of engine and switch name what they see instead, as the code
is now.  Make the input small before:

    build/selftests/fuzz/fuzz_peers -minimize_crash=1 -runs=100000 FILE

An input of fuzz_peers becomes one vector for the PS and one for the worker, since
what one of them is told does not depend on the other there; keep the one that
fails.  Time and marks are left out, and what the worker itself has sent becomes
the state "pushed": if no vector fails without them, a unit test has to do.
"""
import struct
import sys

# as in fuzz_peers.c: the run, and the nonce of the worker's join
EPOCH, RANK, NONCE = 0x101, 1, 1001
RANKS, SHAPE = 3, "3 16 4"
WELCOME, HEADER, CONTROL = 3, 36, 68


def records(data):
    """(kind, packet) of each; no packet for time and for the worker's own"""
    at = 0
    while at < len(data):
        kind = data[at]
        at += 1
        if not kind:
            at += 1
            yield "time", None
        elif kind & 0x20:
            yield "sent", None
        else:
            length = data[at] if at < len(data) else 0
            packet = data[at + 1:at + 1 + length]
            at += 1 + length
            yield kind, packet


def of_any_run(packet):
    """The epoch relative to that of the run"""
    if len(packet) < HEADER:
        return packet
    epoch = struct.unpack_from("!I", packet, 8)[0]
    return packet[:8] + struct.pack("!I", (epoch - EPOCH) & 0xffffffff) + \
        packet[12:]


def line(name, way, packet):
    return f"{name} {way} ? ? {packet.hex() or '-'}"


def welcomes(packet):
    return len(packet) == CONTROL and packet[:4] == bytes((1, WELCOME, 0, 0)) \
        and struct.unpack_from("!I", packet, HEADER)[0] == NONCE


def for_the_ps(data, name):
    state, lines = "idle", []
    for kind, packet in records(data):
        if kind == "sent":
            state = "pushed"
        elif kind != "time" and not kind & 1:
            ranks = [r for r in range(RANKS) if kind >> 2 & 1 << r]
            way = f"{ranks[0] if ranks else 'x'}>ps"
            lines.append(line(name, way, of_any_run(packet)))
    return state, lines


def for_the_worker(data, name):
    state, lines = "joining", []
    for kind, packet in records(data):
        if kind == "sent":
            if state == "idle":
                state = "pushed"
        elif kind != "time" and kind & 1:
            if state == "joining" and welcomes(packet):
                state, lines = "idle", []
                continue
            lines.append(line(name, f"ps>{RANK}", of_any_run(packet)))
    return state, lines


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in ("packet", "peers"):
        sys.exit(__doc__)
    kind, path, name = sys.argv[1:]
    with open(path, "rb") as f:
        data = f.read()
    print("#")
    if kind == "packet":
        print("job 2 1400 256 idle")
        print(line(name, "0>ps", data))
        return
    for state, lines in (for_the_ps(data, f"{name}-ps"),
                         for_the_worker(data, f"{name}-worker")):
        if lines:
            print("job", SHAPE, state)
            print(*lines, sep="\n")


if __name__ == "__main__":
    main()
