#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What was measured in User-mode Linux is shown as it is, for rows made up, with
the rows of the switch's benchmark but other figures; and what of it is the hosts'."""
import json
import math
import pathlib
import subprocess
import sys
import tempfile

from results import finish, result

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path[1:1] = [str(TOP / "userspace/bench" / name) for name in ("uml", "rack")]
import cards  # noqa: E402
from costs import per_gb  # noqa: E402

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


def row(system, switched, workers=4):
    made = {"bed": "uml", "system": system, "workers": workers, "bytes": 4194304,
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


def shares():
    """Of 5 s own and 3 the machine's, at 0.1 GB/s: the bed had the CPU for 0.8 of
    the time, and the ticks of ports and cards count for as much."""
    got = per_gb(5, 3, 1, 2, 1e8)
    want = {"cpu": 8, "own": 5, "switch": 0.8, "cards": 1.6, "hosts": 2.6}
    result(got.keys() == want.keys() and
           all(math.isclose(got[k], want[k]) for k in want),
           "what is not ports and cards is the hosts'")
    result(per_gb(5, 3, 1, 2, 1e9)["hosts"] == 2, "of no more than all the time")


def threads():
    """Whose time it is goes by the device that a thread polls."""
    def stat(name, user, system):
        return f"9 ({name}) S 2 0 0 0 -1 69238880 0 0 0 0 {user} {system} 0 0 20\n"

    stats = (stat("napi/w0-1", 1, 2), stat("napi/ps-2", 3, 4),
             stat("napi/c-w0-3", 10, 20), stat("napi/p-ps-4", 30, 40),
             stat("napi/eth0-5", 100, 100), stat("w0", 100, 100),
             stat("a (b) c", 100, 100), stat("napi/w1-6", 100, 100))
    result(cards.taken(stats, ["w0", "ps"]) == (10, 100),
           "time of ports and cards, not of others")


def main():
    with tempfile.TemporaryDirectory() as tmp:
        files = [f"{tmp}/{name}.json" for name in ("rows", "switch", "out")]
        for name, rows in zip(files, ([row("ATP, switch", True),
                                       row("Gloo, ring", False),
                                       row("ATP, switch, copies", True, 8)],
                                      switch(files[1]))):
            with open(name, "w", encoding="ascii") as f:
                json.dump(rows, f)
        run("floor.py", *files)
        shown = run("table.py", files[2])
        with open(files[2], encoding="ascii") as f:
            costs = [row["cpu_s_per_GB"] for row in json.load(f)]
    # 1 + 2 * 2 + 3 + 6 + 4 + 4 * 5 in the switch, of 8 1 + 6 * 2 + ... + 8 * 5
    for number, (system, cost, spread) in enumerate(
            (("ATP, switch", 45, ["(44.30", "to", "46.40)"]),
             ("Gloo, ring", 7, ["(6.30", "to", "8.40)"]),
             ("ATP, switch, copies", 73, ["(72.30", "to", "74.40)"]))):
        lines = [line[24:].split() for line in shown.splitlines()
                 if line[2:24].strip() == system]
        result(costs[number] == cost and lines == [
            ["50.0", "(45.0", "to", "60.0)", "40.00", "30.00", "7.00",
             f"{cost:.2f}", *spread]], system)
    shares()
    threads()
    return finish()


sys.exit(main())
