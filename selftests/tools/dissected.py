# SPDX-License-Identifier: GPL-2.0
"""What the dissector shows of frames, field by field beside the header's."""

import os
import tempfile

import pcap

# shown in hexadecimal
HEX = ("flags", "bitmap0", "bitmap1", "ranks")
# what may be remarked of a run in which nothing is wrong
HEALTHY = {"sent again", "congestion met on the way here"}


def expect(got, want):
    if got != want:
        raise AssertionError(f"{got!r}, not {want!r}")


def shown(fields, values, wanted):
    """What tshark printed of the packets of a frame, as numbers."""
    found = [{} for _ in wanted]
    for name, texts in zip(fields, values):
        if name in ("int32", "float32"):
            kind = int if name == "int32" else float
            left = [kind(t) for t in texts]
        else:
            left = [int(t, 16 if name in HEX else 10) for t in texts]
        for got, want in zip(found, wanted):
            if name not in want:
                continue
            if name in ("int32", "float32"):
                n = len(want[name])
                got[name], left = tuple(left[:n]), left[n:]
            elif left:
                got[name] = left.pop(0)
        expect((name, left), (name, []))
    return found


def near(got, want):
    """tshark prints six digits or more of a float."""
    return len(got) == len(want) and all(
        g == w or abs(g - w) <= 1e-5 * abs(w) or g != g and w != w
        for g, w in zip(got, want)
    )


def dissected(frames):
    """The sender, what is remarked and the packets of each frame, as tshark and
    the header file agree."""
    fields = [name for name, _ in pcap.HEADER + pcap.CONTROL]
    fields += [*pcap.FLAGS, "int32", "float32"]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "run.pcap")
        pcap.write(path, frames)
        lines = pcap.tshark(path, ["frame.protocols", "ip.src",
                                   "_ws.expert.message",
                                   *(f"atpgrad.{name}" for name in fields)])
    expect(len(lines), len(frames))
    found = []
    for frame, (protocols, src, experts, *values) in zip(frames, lines):
        expect(protocols[0].endswith("udp:atpgrad"), True)
        wanted = [pcap.read(p) for p in pcap.packets(frame[42:])]
        packets = shown(fields, values, wanted)
        for got, want in zip(packets, wanted):
            lanes = got.get("float32", ())
            expect(near(lanes, want.get("float32", ())), True)
            expect({**got, "float32": ()}, {**want, "float32": ()})
        found.append((src[0], experts, packets))
    return found
