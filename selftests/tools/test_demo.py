#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The demo trains, wherever the steps are taken, and what it captures can be
read."""

import json
import os
import struct
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(here, "../lib"), here]
from dissected import HEALTHY, dissected, expect  # noqa: E402
from rack import TOP, run  # noqa: E402

DATA, JOIN = 1, 2
PS = "10.0.0.254"
WORKERS = {f"10.0.0.{n}" for n in range(1, 5)}
made = {}


def demo(*words):
    """What "make demo" leaves in demo.json; it judges itself, too."""
    done = subprocess.run(
        ["make", "--no-print-directory", "-C", TOP, "demo", *words],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        check=False,
    )
    if done.returncode:
        raise AssertionError(done.stdout[-4000:])
    with open(os.path.join(TOP, "build/demo.json"), encoding="utf-8") as file:
        return json.load(file)


def workers_take_the_steps():
    made["worker"] = demo()
    expect(made["worker"]["optimiser"], "worker")


def captured():
    """The frames of build/demo.pcap"""
    with open(os.path.join(TOP, "build/demo.pcap"), "rb") as file:
        data = file.read()
    at, frames = 24, []
    while at < len(data):
        size, = struct.unpack_from("<I", data, at + 8)
        frames.append(data[at + 16:at + 16 + size])
        at += 16 + size
    return frames


def wireshark_can_read_the_demo():
    frames = captured()
    ways, lanes = set(), 0
    for src, experts, packets in dissected(frames):
        expect(set(experts) <= HEALTHY, True)
        for packet in packets:
            ways.add((src == PS, packet["type"]))
            lanes += packet.get("elements", 0)
            # who sends what the switch has added is the last to come
            expect(src == PS or src in WORKERS, True)
    expect({(False, JOIN), (False, DATA), (True, DATA)} <= ways, True)
    print(f"# {len(frames)} frames, {lanes} lanes")


def the_ps_takes_the_steps():
    made["ps"] = demo("SERVER=1")
    expect(made["ps"]["optimiser"], "ps")


def both_reach_the_same_accuracy():
    print(f"# {made}")
    expect(made["ps"]["accuracy"], made["worker"]["accuracy"])
    expect(made["ps"]["accuracy_at_ps"], made["worker"]["accuracy"])
    expect(made["ps"]["accuracy_with_workers"], made["worker"]["accuracy"])


if __name__ == "__main__":
    sys.exit(run([workers_take_the_steps, wireshark_can_read_the_demo,
                  the_ps_takes_the_steps, both_reach_the_same_accuracy]))
