#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The rack's benchmark runs, all sums are right, and its rows are whole.

How fast it was is not judged: an emulated machine under load is not.  But nothing
is faster than its link, and a switch that adds spares the PS's.
"""
import itertools
import json
import numbers
import pathlib
import subprocess
import sys
import tempfile

from results import SYSTEMS, finish, result

TOP = pathlib.Path(__file__).resolve().parents[2]
BENCH = TOP / "userspace/bench/rack"
PROGRAMS = TOP / "build/selftests/bench/rack"

WORKERS = 2
BYTES = (8192, 65536)
MBIT = 10
# a turn for each part
ROUNDS = {"rack": 1, "free": 1, "parts": 3}
FIGURES = ("median_Bps", "min_Bps", "max_Bps")
# Headers and what is sent again take less than that, and answers without data
MORE, CONTROL = 1.8, 8192
LIMITS = ("limit_Bps", "link_Bps", "flood_redirected_Bps", "flood_in_Bps",
          "flood_out_Bps")


def run(*command):
    done = subprocess.run(list(map(str, command)), text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    for line in done.stdout.splitlines():
        print("#", line)
    return done


def figures(row, names):
    return all(isinstance(row[name], numbers.Real) and row[name] >= 0
               for name in names)


def complete(row):
    names, costs = FIGURES, ["cpu_s_per_GB"]
    if row["bed"] == "rack":
        names += LIMITS
    elif row["limit_Bps"] is not None:
        return False
    if row["bed"] == "parts":
        costs += [f"cpu_{part}_s_per_GB" for part in ("workers", "switch", "ps")]
    return figures(row, names) and row["rounds"] == ROUNDS[row["bed"]] and \
        0 < row["min_Bps"] <= row["median_Bps"] <= row["max_Bps"] and \
        all(0 <= row[f"min_{name}"] <= row[name] <= row[f"max_{name}"]
            for name in costs)


def limited(row):
    """Several times the limit was offered; a queue that was full at first may
    have let a little more pass."""
    most = 1.05 * row["link_Bps"]
    return (row["flood_redirected_Bps"] > 2 * most and
            0 < row["flood_in_Bps"] <= most and
            0 < row["flood_out_Bps"] <= most)


def counted(row):
    """Of two workers each must send and get as much as a tensor, whatever the
    algorithm; a PS gets that of both, unless a switch has added them."""
    links, size = row["link_bytes"], row["bytes"]
    ps = {"ATP, switch": (1, 1), "ATP, PS alone": (2, 2), "TCP, PS": (2, 2)}
    due = {"w0": (size, size), "w1": (size, size),
           "ps": [n * size for n in ps.get(row["system"], (0, 0))]}
    return set(links) == set(due) and all(
        least <= n <= MORE * least + CONTROL
        for host, ways in due.items() for least, n in zip(ways, links[host]))


def held(row):
    """Each rank gets as much as a tensor by its link, none before the start."""
    return row["median_Bps"] <= 1.02 * row["limit_Bps"]


def added(row):
    """The PS gets one tensor and not that of each worker, headers and what is
    sent again included."""
    return row["link_bytes"]["ps"][1] < 0.9 * row["workers"] * row["bytes"]


def main():
    sizes = ",".join(map(str, BYTES))
    with tempfile.TemporaryDirectory() as tmp:
        rows_file = f"{tmp}/rows.json"
        done = run(BENCH / "bench.py", PROGRAMS, rows_file, MBIT, WORKERS,
                   sizes, 1, "rack,free,parts")
        result(done.returncode == 0, "the benchmark runs, its sums are right")
        with open(rows_file, encoding="ascii") as f:
            rows = json.load(f)
        want = {*itertools.product(("rack", "free"), SYSTEMS, (WORKERS,),
                                   BYTES),
                *itertools.product(("parts",), SYSTEMS, (WORKERS,),
                                   BYTES[-1:])}
        got = [(r["bed"], r["system"], r["workers"], r["bytes"]) for r in rows]
        result(len(got) == len(want) and set(got) == want,
               "a row for every bed, system and size")
        result(all(map(complete, rows)), "rows are complete")
        result(all(counted(r) for r in rows if r["bed"] == "rack"),
               "bytes on every link are counted")
        result(all(limited(r) for r in rows if r["bed"] == "rack"),
               "what XDP redirects comes in by the limit, and no more")
        result(all(held(r) for r in rows if r["bed"] == "rack"),
               "no system is faster than the limited links")
        # of few fragments one that is sent again is a lot
        result(all(added(r) for r in rows if r["bed"] == "rack" and
                   r["system"] == "ATP, switch" and r["bytes"] == BYTES[-1]),
               "the switch adds, so that the PS gets less than all workers send")
    return finish()


sys.exit(main())
