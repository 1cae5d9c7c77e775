#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""A run is captured where a worker and the PS are, and every field of every
packet that tshark shows is what the header file says it is."""

import os
import socket
import struct
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
import pcap  # noqa: E402
from dissected import HEALTHY, dissected  # noqa: E402
from live import (  # noqa: E402
    JOB, LANES, WORKERS, a_run, expect, lay_out, rack, tell,
)
from rack import inside, run  # noqa: E402

ETH_P_ALL = 3
SO_RCVBUFFORCE = 33
CHUNKS, FRAGMENTS = 2, 6
DATA, JOIN, WELCOME, LEAVE = 1, 2, 3, 4


class Capture:
    """What passes a host's device."""

    def __init__(self, host):
        with inside(host):
            self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                                      socket.htons(ETH_P_ALL))
        self.sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)
        self.sock.bind(("eth0", ETH_P_ALL))
        self.sock.setblocking(False)

    def frames(self):
        """Those to the port of ATP, in their order."""
        found = []
        while True:
            try:
                raw = self.sock.recv(65536)
            except BlockingIOError:
                self.sock.close()
                return found
            if raw[12:14] == b"\x08\x00" and raw[23] == socket.IPPROTO_UDP \
                    and struct.unpack_from("!H", raw, 36)[0] == pcap.PORT:
                found.append(raw)


def captured():
    """Hosts and frames of a short run of each kind of numbers."""
    lay_out()
    captures = {host: Capture(host) for host in ("w0", "ps")}
    for values in ("plain", "wild"):
        a_run("--chunks", CHUNKS, "--lanes", LANES * FRAGMENTS - 1,
              "--dtype", "float32", "--values", values)
    return [(host, frame) for host, capture in captures.items()
            for frame in capture.frames()]


def burst(frames):
    """One frame of several, as the kernel has it before it is cut."""
    first = bytearray(frames[0][:42])
    rest = b"".join(frame[42:] for frame in frames)
    struct.pack_into("!H", first, 16, 28 + len(rest))
    struct.pack_into("!H", first, 38, 8 + len(rest))
    return bytes(first) + rest


CAPTURED = []


def every_field_is_that_of_the_header_file():
    frames = captured()
    sums = [frame for host, frame in frames
            if host == "w0" and frame[43] == DATA]
    frames.append(("nobody", burst(sums[:5])))
    types, lanes = {}, {"int32": 0, "float32": 0}
    for (host, _), (src, experts, packets) in zip(
            frames, dissected([frame for _, frame in frames])):
        for got in packets:
            CAPTURED.append((host, src, got))
            for name in lanes:
                lanes[name] += len(got.get(name, ()))
            kind = got["type"], got["isAck"]
            types[kind] = types.get(kind, 0) + 1
        expect(set(experts) <= HEALTHY, True)
    print(f"# {len(frames)} frames, packets: {types}")
    # each kind was there: pushed values and sums, up and down, scaled and not
    expect({(DATA, 0), (DATA, 1), (JOIN, 0), (WELCOME, 0), (LEAVE, 0)} <=
           set(types), True)
    expect(lanes["int32"] > 0 and lanes["float32"] > 0, True)


def it_counts_as_the_worker_does():
    """Fragments that the dissector has seen leave, and sent again."""
    expect({got["jobID"] for _, _, got in CAPTURED}, {JOB})
    sent = [got["resend"] for host, src, got in CAPTURED
            if (host, src) == ("w0", "10.0.0.1") and
            got["type"] == DATA and not got["isAck"]]
    counters = tell("w0", "stats", "job", JOB)[0]["counters"]
    expect(counters["sent"] >= 2 * CHUNKS * FRAGMENTS, True)
    expect((sent.count(0) + sent.count(1), sent.count(1)),
           (counters["sent"] + counters["resent"], counters["resent"]))


if __name__ == "__main__":
    try:
        code = run((
            every_field_is_that_of_the_header_file,
            it_counts_as_the_worker_does,
        ))
    finally:
        rack("down")
    sys.exit(code)
