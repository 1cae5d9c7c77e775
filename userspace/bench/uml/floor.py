#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Add to the hosts' time that bench.py has measured what the switch's program takes,
which is not told apart from the rest of its ports there.

usage: floor.py ROWS.json SWITCH.json OUT.json

SWITCH.json says what it takes for a fragment by BPF_PROG_RUN (../switch.c).  Rows
get program_s_per_GB and, with that of the hosts, sum_s_per_GB (median, min, max),
which is their cpu_s_per_GB.
"""
import json
import sys


def program_seconds(switch, workers, payload):
    """Per GB: each worker's gradients are added, the last one's complete the
    sum, which leaves by a port; the parameters come once and leave in a copy
    for each worker."""
    ns = {r["action"]: r["ns_per_fragment"] for r in switch
          if r["bytes"] == payload}
    fragment = (ns["allocate"] + (workers - 2) * ns["aggregate"] +
                ns["complete"] + ns["leave"] + ns["parameter"] +
                workers * ns["copy"])
    return fragment / payload


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="ascii") as f:
        rows = json.load(f)
    with open(sys.argv[2], encoding="ascii") as f:
        switch = json.load(f)
    for row in rows:
        program = program_seconds(switch, row["workers"], row["payload"]) \
            if row["switched"] else 0
        row["program_s_per_GB"] = program
        for value in ("median", "min", "max"):
            row[f"{value}_sum_s_per_GB"] = \
                row[f"{value}_hosts_s_per_GB"] + program
        row["cpu_s_per_GB"] = row["median_sum_s_per_GB"]
    with open(sys.argv[3], "w", encoding="ascii") as f:
        json.dump(rows, f, indent=1)


if __name__ == "__main__":
    main()
