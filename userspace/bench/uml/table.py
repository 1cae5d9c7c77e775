#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""What bench.py has measured, as text.

usage: table.py ROWS.json SWITCH.json

SWITCH.json has what the switch's program takes for a fragment (switch.c).
"""
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "rack"))
from sizes import size  # noqa: E402

HEAD = """
User-mode Linux, links as fast as they are, a card for each host
  MB/s: median (least to most); CPU seconds per GB of the tensor, all: what the
  machine gave; own: what kernel and programs computed, without the switching
  between them; hosts: workers and PS, without cards and the switch's ports; sum:
  that, and what the switch's program takes by BPF_PROG_RUN"""


def switch_seconds(switch, workers, payload):
    """Per GB: each worker's gradients are added, the last one's complete the
    sum, which leaves by a port; the parameters come once and leave in a copy
    for each worker."""
    ns = {r["action"]: r["ns_per_fragment"] for r in switch
          if r["bytes"] == payload}
    fragment = (ns["allocate"] + (workers - 2) * ns["aggregate"] +
                ns["complete"] + ns["leave"] + ns["parameter"] +
                workers * ns["copy"])
    return fragment / payload


def cells(row, switch):
    total = row["median_hosts_s_per_GB"]
    if row["switched"]:
        total += switch_seconds(switch, row["workers"], row["payload"])
    return (f"{row['median_Bps'] / 1e6:.1f}",
            f"({row['min_Bps'] / 1e6:.1f} to {row['max_Bps'] / 1e6:.1f})",
            f"{row['cpu_s_per_GB']:.2f}",
            f"{row['median_own_s_per_GB']:.2f}",
            f"{row['median_hosts_s_per_GB']:.2f}",
            f"({row['min_hosts_s_per_GB']:.2f} to "
            f"{row['max_hosts_s_per_GB']:.2f})", f"{total:.2f}")


def show(*words):
    print("  {:20}{:>8} {:18}{:>7}{:>7}{:>7} {:18}{:>7}".format(*words))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="ascii") as f:
        rows = json.load(f)
    with open(sys.argv[2], encoding="ascii") as f:
        switch = json.load(f)
    print(HEAD)
    last = None
    for row in rows:
        what = (f"{row['workers']} workers, {size(row['bytes'])}, "
                f"payload {row['payload']}")
        if what != last:
            print(f"\n  {what}")
            show("", "MB/s", "", "all", "own", "hosts", "", "sum")
            last = what
        show(row["system"], *cells(row, switch))


if __name__ == "__main__":
    main()
