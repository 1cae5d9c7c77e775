# SPDX-License-Identifier: GPL-2.0
"""Captures in files, what uapi/linux/atp_packet.h makes of a packet, and what
tshark makes of it."""

import os
import struct
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "../lib"))
from rack import TOP  # noqa: E402

SCRIPT = os.path.join(TOP, "userspace/wireshark/atpgrad.lua")
PORT = 4797
ETHERNET = 1
HEADER = (
    ("version", "B"), ("type", "B"), ("flags", "H"), ("jobID", "I"),
    ("epoch", "I"), ("sequenceNumber", "I"), ("bitmap0", "I"),
    ("bitmap1", "I"), ("fanInDegree0", "B"), ("fanInDegree1", "B"),
    ("dataType", "B"), ("treeID", "B"), ("aggregatorIndex", "I"),
    ("elements", "H"), ("cwndCap", "H"),
)
CONTROL = tuple(
    (name, "I") for name in
    ("nonce", "workers", "fragment", "window", "scale", "reason", "ranks",
     "server")
)
# bits of the flags, from the lowest
FLAGS = ("overflow", "resend", "collision", "ecn", "edgeSwitchIdentifier",
         "isAck", "raw", "last", "switched", "mcast")
DATA = 1


def write(path, frames):
    """A capture with these frames."""
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535,
                            ETHERNET))
        for number, frame in enumerate(frames):
            f.write(struct.pack("<IIII", number, 0, len(frame), len(frame)))
            f.write(frame)


def unpack(layout, data):
    size = struct.calcsize("!" + "".join(code for _, code in layout))
    values = struct.unpack("!" + "".join(code for _, code in layout),
                           data[:size])
    return dict(zip((name for name, _ in layout), values))


def packets(payload):
    """Those in it: the kernel may have had a burst in one piece."""
    while payload:
        size = 36 + (32 if payload[1] != DATA else
                     (unpack(HEADER, payload)["elements"] + 1) // 2 * 8)
        yield payload[:size]
        payload = payload[size:]


def read(payload):
    """Every field of an ATP packet, its lanes and what pads them."""
    fields = unpack(HEADER, payload)
    rest = payload[36:]
    for bit, name in enumerate(FLAGS):
        fields[name] = fields["flags"] >> bit & 1
    if fields["type"] != DATA:
        fields.update(unpack(CONTROL, rest))
        return fields
    lanes = fields["elements"]
    raw = fields["raw"] and fields["dataType"] == 2
    fields["float32" if raw else "int32"] = struct.unpack(
        f"<{lanes}{'f' if raw else 'i'}", rest[:4 * lanes])
    return fields


def tshark(path, names):
    """A list of values per field for each packet of a capture."""
    words = ["tshark", "-n", "-X", "lua_script:" + SCRIPT, "-r", path,
             "-T", "fields", "-E", "occurrence=a", "-E", "aggregator=;"]
    for name in names:
        words += ["-e", name]
    done = subprocess.run(words, text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode or "Lua" in done.stderr:
        raise AssertionError(done.stderr)
    return [[v.split(";") if v else [] for v in line.split("\t")]
            for line in done.stdout.splitlines()]
