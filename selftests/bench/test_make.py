#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""What one types for the benchmark and the profile, only smaller: it builds all that
it needs, User-mode Linux too, runs in every bed, and leaves its rows and the plot.

It is typed in a copy of this tree: results that are here took hours.
"""
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from results import SYSTEMS, finish, result

TOP = pathlib.Path(__file__).resolve().parents[2]
# enough for the clock of CPU time at native speed, and for samples
SMALL = ("WORKERS=2", "BYTES=262144", "ROUNDS=1", "UML_MIB=24")
# without what libatp and the kernel do for the first ones
PLAIN = {"ATP, switch, copies", "Gloo, ring, no GSO"}
BEDS = {"rack": SYSTEMS, "free": SYSTEMS, "parts": SYSTEMS,
        "uml": SYSTEMS | PLAIN, "BPF_PROG_RUN": {"switch", "plain C"}}
PAYLOADS = {1400, 3072}


def copy(to):
    """Kernels, which take minutes to build, are not written to."""
    subprocess.run(["rsync", "-a", "--exclude=/build", "--exclude=.git",
                    f"{TOP}/", to], check=True)
    kernels = to / "build/kernels"
    kernels.mkdir(parents=True)
    for kernel in (TOP / "build/kernels").iterdir():
        subprocess.run(["cp", "-al", kernel, kernels], check=True)


def typed(where, *words):
    """Whatever make has started this; returns status and output."""
    env = {k: v for k, v in os.environ.items()
           if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    with subprocess.Popen(["make", *words], cwd=where, env=env, text=True,
                          stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT) as make:
        lines = []
        for line in make.stdout:
            print("#", line, end="", flush=True)
            lines.append(line)
    return make.returncode, "".join(lines)


def rows_of(file):
    with open(file, encoding="ascii") as f:
        rows = json.load(f)
    systems = {bed: set() for bed in BEDS}
    for row in rows:
        systems.setdefault(row["bed"], set()).add(row["system"])
    return rows, systems


def apart(rows):
    """Each has taken some of the time, and together what there was; threads are told
    apart by ticks, of which a row may have none."""
    def all_of(what):
        return [row[f"median_{what}_s_per_GB"] for row in rows]

    parts = tuple(map(all_of, ("hosts", "switch", "cards")))
    return min(parts[0]) > 0 and min(map(sum, parts)) > 0 and all(
        math.isclose(sum(row), own) for *row, own in zip(*parts, all_of("own")))


def bench(where):
    status, _ = typed(where, "bench", *SMALL)
    result(status == 0, "make bench")
    rows, systems = rows_of(where / "build/bench.json")
    result(systems == BEDS, "its rows are of every bed and system")
    result(all(row["median_Bps"] > 0 and row["cpu_s_per_GB"] > 0
               for row in rows), "each has a speed and a cost")
    result(apart([row for row in rows if row["bed"] == "uml"]),
           "at native speed, hosts, cards and the switch's ports apart")
    payloads = {(row["system"], row["payload"]) for row in rows
                if row["bed"] == "uml"}
    result(payloads == {(system, payload) for system in BEDS["uml"]
                        for payload in PAYLOADS},
           "at native speed, with each payload")
    png = (where / "build/bench.png").read_bytes()
    result(png.startswith(b"\x89PNG"), "and the plot is there")


def profile(where):
    status, output = typed(where, "profile", *SMALL)
    result(status == 0, "make profile")
    shares = re.findall(r"^ +([\d.]+)%  \S", output, re.M)
    result(len(shares) > 10 and 0 < sum(map(float, shares)) <= 200.1,
           "says which functions took the time, of hosts and of the rest")


def main():
    build = TOP / "build/selftests/bench"
    build.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=build) as tmp:
        where = pathlib.Path(tmp)
        copy(where)
        bench(where)
        profile(where)
    return finish()


sys.exit(main())
