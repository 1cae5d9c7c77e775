#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Where the time goes: what User-mode Linux and its programs compute while a
system adds tensors, by function, sampled by perf(1) from outside.

usage: profile_bed.py FOLDER SYSTEM PAYLOAD PROGRAMS WORKERS BYTES MIB ROUNDS

FOLDER keeps what perf wrote; SYSTEM is its name in the benchmark's tables, and
the rest is as for bench.py.  The bed's kernel is one process of this machine.
What in it are the hosts, workers and PS, is told by the stacks: a thread that is
seen in a bridge or in BPF polls a card or a port, and all others are theirs.
"""
import bisect
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys

from profiled import BEGIN, END

HERE = pathlib.Path(__file__).resolve().parent
RATE = 4000         # samples per second
STACK = 1 << 14     # bytes
PAGE = 1 << 12
MOST = 20           # functions
# what hosts do not have
FORWARDING = re.compile(r"br_[\w.]+|fdb_find_rcu|bpf_prog_\w+")
SAMPLE = re.compile(r"\s*(\S+)\s+(\d+)\s+([0-9a-f]+).*?\bSP:0x([0-9a-f]+)")
PROGRAMS = "(programs, libraries)"


def record(folder, words):
    """Runs the bed; perf samples while the benchmark measures."""
    control = folder / "control"
    control.unlink(missing_ok=True)
    os.mkfifo(control)
    # opened for both, it waits for nobody
    with open(os.open(control, os.O_RDWR), "wb", buffering=0) as orders, \
            subprocess.Popen(
                ["perf", "record", "--quiet", "--delay=-1",
                 f"--control=fifo:{control}", "--event=cpu-clock",
                 f"--freq={RATE}", "--user-regs=sp",
                 f"--output={folder}/perf.data", "--", *words],
                stdout=subprocess.PIPE, text=True) as bed:
        for line in bed.stdout:
            if line.strip() == BEGIN:
                orders.write(b"enable\n")
            elif line.strip() == END:
                orders.write(b"disable\n")
            else:
                print(line, end="", flush=True)
    control.unlink()
    return bed.returncode


class Symbols:
    def __init__(self, path):
        lines = [line.split() for line in
                 path.read_text(encoding="ascii").splitlines()]
        found = sorted((int(line[0], 16), line[2]) for line in lines
                       if line[1] in "tTwW")
        self.starts = [start for start, _ in found]
        self.names = [name for _, name in found]

    def name(self, address):
        """Programs and libraries, the kernel's own too, are above and below."""
        at = bisect.bisect(self.starts, address) - 1
        if at < 0 or address > self.starts[-1] + PAGE:
            return PROGRAMS
        return self.names[at]


def samples(folder):
    """(pid, address, stack) of whatever the bed's processes computed."""
    text = subprocess.run(
        ["perf", "script", f"--input={folder}/perf.data",
         "--fields=comm,pid,ip,uregs"], check=True, stdout=subprocess.PIPE,
        text=True).stdout
    for line in text.splitlines():
        match = SAMPLE.match(line)
        if not match or match[1] != "vmlinuz":
            continue
        address = int(match[3], 16)
        # else the machine's kernel, of which nothing is true elsewhere
        if address < 1 << 63:
            yield int(match[2]), address, int(match[4], 16) // STACK


def by_function(folder):
    """Counters of samples by function: (of the hosts, of cards and ports)"""
    symbols = Symbols(folder / "symbols")
    stacks = collections.defaultdict(collections.Counter)
    hosts, others = collections.Counter(), collections.Counter()
    found = list(samples(folder))
    kernel = min((pid for pid, *_ in found), default=0)
    for pid, address, stack in found:
        if pid == kernel:
            stacks[stack][symbols.name(address)] += 1
        else:
            hosts[PROGRAMS] += 1
    for counts in stacks.values():
        forwards = any(FORWARDING.fullmatch(name) for name in counts)
        (others if forwards else hosts).update(counts)
    return hosts, others


def table(hosts, others):
    whole = hosts.total() + others.total()
    if not whole:
        sys.exit("profile: perf has no samples")
    print(f"\n{whole} samples; hosts {hosts.total() / whole:.0%}, "
          f"cards and switch {others.total() / whole:.0%}")
    for what, counts in (("hosts", hosts), ("cards and switch", others)):
        print(f"\n{what:>16}  function")
        for name, n in counts.most_common(MOST):
            print(f"{n / counts.total():>16.1%}  {name}")


def main():
    if len(sys.argv) != 9:
        sys.exit(__doc__)
    if not shutil.which("perf"):
        sys.exit("profile: perf is missing: apt install linux-perf")
    folder = pathlib.Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    system, payload, programs, *rest = sys.argv[2:]
    status = record(folder, [
        HERE / "run.py", "--timeout", "7200", folder, folder / "dmesg",
        HERE / "profiled.py", folder / "symbols", system, payload, programs,
        folder / "rows.json", *rest])
    if status:
        sys.exit(status)
    table(*by_function(folder))


if __name__ == "__main__":
    main()
