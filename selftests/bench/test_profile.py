#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The profile of the bed at native speed tells hosts from cards, and counts nothing
but what the bed computes: samples that are made up, in perf's words."""
import os
import pathlib
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "userspace/bench/uml"))
import profile_bed  # noqa: E402

SYMBOLS = """\
0000000060001000 T csum_partial
0000000060002000 t veth_poll
0000000060003000 D jiffies
0000000070001000 t atp_xmit.cold\t[atp]
0000000070002000 t bpf_prog_0123456789abcdef_atp_ingress\t[bpf]
"""
KERNEL, PROGRAM = 100, 200
HOST, CARD = 0x6fe40000, 0x6fe44000
LIBRARY = 0x7f0000000000
# (process, pid, address, stack pointer, how often)
SAMPLES = (
    # a worker's thread, from both ends of its stack
    ("vmlinuz", KERNEL, 0x70001010, HOST + 0x100, 80),
    ("vmlinuz", KERNEL, 0x60001004, HOST + 0x3ff0, 10),
    # a port's, which a timer of ATP has met once
    ("vmlinuz", KERNEL, 0x60003008, CARD + 0x3ff0, 20),
    ("vmlinuz", KERNEL, 0x70002008, CARD, 79),
    ("vmlinuz", KERNEL, 0x70001000, CARD, 1),
    # a program, a library, what this machine's kernel does for them, others
    ("vmlinuz", PROGRAM, 0x60001000, 0x7fff0000, 4),
    ("vmlinuz", KERNEL, LIBRARY, HOST, 3),
    ("vmlinuz", KERNEL, 0xffffffff82200ff1, HOST, 500),
    ("run.py", 99, 0x52d0c3, 0x7ffe0000, 500),
)
PERF = """\
#!/bin/sh
exec cat "$(dirname "$0")/said"
"""
PORT = "bpf_prog_0123456789abcdef_atp_ingress"
WANT_HOSTS = {"atp_xmit.cold": 80, "csum_partial": 10,
              profile_bed.PROGRAMS: 7}
WANT_OTHERS = {"veth_poll": 20, PORT: 79, "atp_xmit.cold": 1}

count = 0
failed = 0


def result(got, want, what):
    global count, failed
    count += 1
    if got != want:
        failed += 1
        print(f"# {got}, not {want}")
    print(f"{'ok' if got == want else 'not ok'} {count} {what}")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "symbols").write_text(SYMBOLS, encoding="ascii")
        (folder / "said").write_text("".join(
            f"{who:>16} {pid} {ip:>17x} ABI:2    SP:0x{sp:x} \n" * times
            for who, pid, ip, sp, times in SAMPLES), encoding="ascii")
        (folder / "perf").write_text(PERF, encoding="ascii")
        (folder / "perf").chmod(0o755)
        os.environ["PATH"] = f"{name}:{os.environ['PATH']}"
        hosts, others = profile_bed.by_function(folder)
    result(dict(hosts), WANT_HOSTS, "what the hosts compute")
    result(dict(others), WANT_OTHERS, "what cards and the switch compute")
    print(f"1..{count}")
    return failed != 0


sys.exit(main())
