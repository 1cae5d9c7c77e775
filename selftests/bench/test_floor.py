#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What was measured in User-mode Linux is shown as it is, for rows made up, with
the rows of the switch's benchmark but other figures."""
import json
import pathlib
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]

BENCH = TOP / "build/selftests/bench/switch"
# nanoseconds per byte; the others would be seen in the sum
TAKES = {"allocate": 1, "aggregate": 2, "complete": 3, "parameter": 4,
         "copy": 5, "leave": 6}


def switch(name):
    """What the benchmark leaves, as it names it"""
    subprocess.run([BENCH, name, "1"], check=True, stdout=subprocess.DEVNULL)
    with open(name, encoding="ascii") as f:
        rows = json.load(f)
    for r in rows:
        r["ns_per_fragment"] = TAKES.get(r["action"], 1000) * r["bytes"]
    return rows


def row(system, switched):
    made = {"bed": "uml", "system": system, "workers": 4, "bytes": 4194304,
            "payload": 1400, "limit_Bps": None, "rounds": 3,
            "switched": switched}
    for column, middle in (("Bps", 5e7), ("cpu_s_per_GB", 40),
                           ("own_s_per_GB", 30), ("hosts_s_per_GB", 7)):
        made[f"median_{column}"] = middle
        made[f"min_{column}"] = middle * 0.9
        made[f"max_{column}"] = middle * 1.2
    return made


def run(script, *words):
    return subprocess.run([TOP / "userspace/bench/uml" / script, *words],
                          text=True, check=True, stdout=subprocess.PIPE).stdout


def main():
    with tempfile.TemporaryDirectory() as tmp:
        files = [f"{tmp}/{name}.json" for name in ("rows", "switch", "out")]
        for name, rows in zip(files, ([row("ATP, switch", True),
                                       row("Gloo, ring", False)],
                                      switch(files[1]))):
            with open(name, "w", encoding="ascii") as f:
                json.dump(rows, f)
        run("floor.py", *files)
        shown = run("table.py", files[2])
        with open(files[2], encoding="ascii") as f:
            costs = [row["cpu_s_per_GB"] for row in json.load(f)]
    print("1..2")
    failed = 0
    # 1 + 2 * 2 + 3 + 6 + 4 + 4 * 5 in the switch
    for number, (system, cost, spread) in enumerate(
            (("ATP, switch", 45, ["(44.30", "to", "46.40)"]),
             ("Gloo, ring", 7, ["(6.30", "to", "8.40)"])), 1):
        lines = [line.split(system)[1].split()
                 for line in shown.splitlines() if system in line]
        ok = costs[number - 1] == cost and lines == [
            ["50.0", "(45.0", "to", "60.0)", "40.00", "30.00", "7.00",
             f"{cost:.2f}", *spread]]
        failed += not ok
        print(f"{'ok' if ok else 'not ok'} {number} {system}")
    return failed


sys.exit(main())
