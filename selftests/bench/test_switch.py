#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""The switch's benchmark runs, and leaves a row for all that it measures."""
import itertools
import json
import numbers
import pathlib
import re
import subprocess
import sys
import tempfile

from results import finish, result

TOP = pathlib.Path(__file__).resolve().parents[2]
BENCH = TOP / "build/selftests/bench/switch"
ROWS = TOP / "userspace/bench/rows.py"

ACTIONS = ("other", "vlan", "unknown", "truncated", "version", "control",
           "begin", "options", "tagged", "length", "no sum", "partial",
           "refused", "header", "bitmap", "stranger", "port", "mismatch",
           "ttl", "raw", "routed", "single", "stale", "passed", "disagree",
           "locked", "collision", "quota", "duplicate", "allocate", "evict",
           "aggregate", "saturate", "complete", "resent", "flush", "unicast",
           "parameter", "kept", "copy", "no hop", "gone", "leave", "marked",
           "C, packed", "C, vector")
# What the switch counts, and no action shows by itself: sums of several of them,
# bytes, and what goes the way of "single"
NOT_ALONE = {"forwarded", "deallocated", "bytes_in", "bytes_out", "oversize"}
BYTES = (248, 1400, 3072, 3400)
NEEDED = ("bed", "system", "workers", "bytes", "median_Bps", "limit_Bps",
          "cpu_s_per_GB")
FIGURES = ("ns_per_fragment", "ns_harness", "median_Bps", "cpu_s_per_GB")


def run(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True,
                          text=True, check=False)
    for line in (done.stdout + done.stderr).splitlines():
        print("#", line)
    return done


def number(x):
    return isinstance(x, numbers.Real) and not isinstance(x, bool)


def complete(row):
    low, high = row["ns_quartiles"]
    return (row["bed"] == "BPF_PROG_RUN" and row["workers"] == 4 and
            row["system"] == ("plain C" if row["action"].startswith("C,")
                              else "switch") and
            all(number(row[name]) for name in FIGURES) and
            number(low) and number(high) and low <= high)


def every_counter():
    """All that can become of a packet is counted, so each counter has an action."""
    types = (TOP / "userspace/switch/switch_types.h").read_text("ascii")
    actions = (TOP / "userspace/bench/actions.c").read_text("ascii")
    counters = set(re.findall(r"^\tX\((\w+), ", types, re.M))
    shown = set(re.findall(r"\b(?:JOB|OTHERS)\((\w+)\)", actions))
    shown.discard("counter")    # of the macros themselves
    result(len(counters) > 40 and counters - NOT_ALONE == shown,
           f"each counter has an action, {counters - NOT_ALONE ^ shown or 'all'}")


def main():
    every_counter()
    with tempfile.TemporaryDirectory() as tmp:
        part, all_rows = f"{tmp}/switch.json", f"{tmp}/bench.json"
        done = run(BENCH, part, 3)
        result(done.returncode == 0, "the benchmark runs")
        shown = {line[:12].strip() for line in done.stdout.splitlines()}
        result(shown >= {"bytes", "harness", *ACTIONS}, "its table is whole")
        with open(part, encoding="ascii") as f:
            rows = json.load(f)
        result([(r["action"], r["bytes"]) for r in rows] ==
               list(itertools.product(ACTIONS, BYTES)),
               "a row for every action and size")
        result(all(map(complete, rows)), "rows are complete")

        done = run(ROWS, all_rows, part, part)
        result(done.returncode == 0, "rows of parts are put together")
        with open(all_rows, encoding="ascii") as f:
            result(json.load(f) == rows + rows, "all of them")
        for name in NEEDED:
            with open(part, "w", encoding="ascii") as f:
                json.dump([{k: v for k, v in row.items() if k != name}
                           for row in rows], f)
            result(run(ROWS, all_rows, part).returncode != 0,
                   f"rows without {name} are refused")
        with open(part, "w", encoding="ascii") as f:
            json.dump([{**row, "median_Bps": None} for row in rows], f)
        result(run(ROWS, all_rows, part).returncode != 0,
               "so are rows without a figure")
        result(run(BENCH).returncode == 2 and
               run(BENCH, part, 0).returncode == 2, "usage")
    return finish()


sys.exit(main())
