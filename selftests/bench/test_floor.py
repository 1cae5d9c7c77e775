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
            "cpu_s_per_GB": 40.0, "switched": switched}
    for column, middle in (("Bps", 5e7), ("cpu_s_per_GB", 40),
                           ("own_s_per_GB", 30), ("hosts_s_per_GB", 7)):
        made[f"median_{column}"] = middle
        made[f"min_{column}"] = middle * 0.9
        made[f"max_{column}"] = middle * 1.2
    return made


def main():
    with tempfile.TemporaryDirectory() as tmp:
        files = f"{tmp}/rows.json", f"{tmp}/switch.json"
        for name, rows in zip(files, ([row("ATP, switch", True),
                                       row("Gloo, ring", False)],
                                      switch(files[1]))):
            with open(name, "w", encoding="ascii") as f:
                json.dump(rows, f)
        done = subprocess.run([TOP / "userspace/bench/uml/table.py", *files],
                              text=True, check=False, stdout=subprocess.PIPE)
    print("1..2")
    failed = 0
    # 1 + 2 * 2 + 3 + 6 + 4 + 4 * 5 in the switch
    for number, (system, jit) in enumerate(
            (("ATP, switch", "45.00"), ("Gloo, ring", "7.00")), 1):
        lines = [line.split(system)[1].split()
                 for line in done.stdout.splitlines() if system in line]
        ok = lines == [["50.0", "(45.0", "to", "60.0)", "40.00", "30.00",
                        "7.00", "(6.30", "to", "8.40)", jit]]
        failed += not ok
        print(f"{'ok' if ok else 'not ok'} {number} {system}")
    return failed + done.returncode


sys.exit(main())
