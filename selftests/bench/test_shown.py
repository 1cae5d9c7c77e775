#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What the rack's benchmark has measured is shown as it is: a table and a picture
of rows that are made up."""
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile

from results import finish, result

TOP = pathlib.Path(__file__).resolve().parents[2]
BENCH = TOP / "userspace/bench/rack"

LIMIT = 1000000
SYSTEMS = {"ATP, switch": 900000, "Gloo, ring": 250000}
WORKERS = (4, 8)
BYTES = (262144, 4194304)
PARTS = {"workers": 31, "switch": 12, "ps": 7}


def cost(name, middle):
    return {name: middle + 0.2, f"min_{name}": middle - 3.0,
            f"max_{name}": middle + 9.0}


def row(bed, workers, size, system):
    speed = SYSTEMS[system]
    made = {
        "bed": bed, "system": system, "workers": workers, "bytes": size,
        "median_Bps": speed, "min_Bps": speed - 1000, "max_Bps": speed + 1000,
        "rounds": 3, "limit_Bps": None, **cost("cpu_s_per_GB", 64),
    }
    if bed == "rack":
        made.update({
            "limit_Bps": LIMIT, "link_Bps": 1250000,
            "flood_redirected_Bps": 5000000, "flood_in_Bps": 1250000,
            "flood_out_Bps": 1237500,
            "link_bytes": {"w0": [size * 5 // 4, size],
                           "w1": [size, size * 3 // 2],
                           "ps": [size // 2, size * 2]},
        })
    if bed == "parts":
        for part, middle in PARTS.items():
            made.update(cost(f"cpu_{part}_s_per_GB", middle))
    if bed == "uml":
        made.update({"payload": 1400, "median_sum_s_per_GB": 9.0,
                     "min_sum_s_per_GB": 8.0, "max_sum_s_per_GB": 11.0})
    return made


def draw(rows, picture):
    """The picture's height, 0 if there is none."""
    with tempfile.NamedTemporaryFile("w", encoding="ascii") as f:
        json.dump(rows, f)
        f.flush()
        done = run(BENCH / "plot.py", f.name, picture)
    if done.returncode or not pathlib.Path(picture).exists():
        return 0
    with open(picture, "rb") as f:
        head = f.read(24)
    if head[:8] != b"\x89PNG\r\n\x1a\n":
        return 0
    return int.from_bytes(head[20:24], "big")


def run(*command):
    done = subprocess.run(list(map(str, command)), text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    for line in done.stdout.splitlines():
        print("#", line)
    return done


def lines_of(text):
    """{(bed's number, workers, size, system): figures}"""
    found, bed, head = {}, 0, None
    for line in text.splitlines():
        if line.startswith("Links"):
            bed += 1
        elif " workers, " in line:
            workers, _, size = line.strip().partition(" workers, ")
            head = int(workers), size
        elif line[2:25].strip() in SYSTEMS:
            found[bed, *head, line[2:25].strip()] = line[26:].split()
    return found


def table(rows_file):
    done = run(BENCH / "table.py", rows_file)
    lines = lines_of(done.stdout)
    want = set(itertools.product((1, 2), WORKERS, ("256 KiB", "4 MiB"),
                                 SYSTEMS))
    want |= set(itertools.product((3,), WORKERS, ("4 MiB",), SYSTEMS))
    result(done.returncode == 0 and set(lines) == want, "a line for every row")
    result("of 4.00 times that" in done.stdout and
           "1.000 came in" in done.stdout and "0.990" in done.stdout,
           "that links are limited")
    speed = ["0.900", "(0.899", "to", "0.901)"]
    result(lines[1, 8, "4 MiB", "ATP, switch"] ==
           speed + ["90.0%", "1.50", "2.00"],
           "limited: share of the limit, bytes on the busiest links")
    result(lines[2, 4, "256 KiB", "ATP, switch"] ==
           speed + ["64", "(61", "to", "73)"],
           "unlimited: CPU time")
    result(lines[3, 8, "4 MiB", "Gloo, ring"] ==
           "31 (28 to 40) 12 (9 to 21) 7 (4 to 16)".split(),
           "CPU time of each part")


def main():
    rows = [row(*key) for key in itertools.chain(
        itertools.product(("rack", "free"), WORKERS, BYTES, SYSTEMS),
        itertools.product(("parts",), WORKERS, BYTES[-1:], SYSTEMS))]
    with tempfile.TemporaryDirectory() as tmp:
        rows_file, picture = f"{tmp}/rows.json", f"{tmp}/rows.png"
        with open(rows_file, "w", encoding="ascii") as f:
            json.dump(rows, f)
        table(rows_file)
        # make bench has rows of other kinds
        others = [{"bed": "switch", "system": "add", "bytes": 1400}]
        native = [row("uml", 4, size, system)
                  for size, system in itertools.product(BYTES, SYSTEMS)]
        result(draw(others, picture) == 0, "no picture of nothing")
        height = draw(rows + others, picture)
        result(height > 0, "the picture is drawn")
        result(draw(rows + others + native, picture) > height,
               "it has a line more for the machine at native speed")
    return finish()


sys.exit(main())
