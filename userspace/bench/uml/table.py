#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""What bench.py has measured, as text.

usage: table.py ROWS.json

The rows have been through floor.py.
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


def spread(row, what, scale=1, digits=2):
    low, high = (row[f"{end}_{what}"] / scale for end in ("min", "max"))
    return f"({low:.{digits}f} to {high:.{digits}f})"


def cells(row):
    return (f"{row['median_Bps'] / 1e6:.1f}", spread(row, "Bps", 1e6, 1),
            f"{row['median_cpu_s_per_GB']:.2f}",
            f"{row['median_own_s_per_GB']:.2f}",
            f"{row['median_hosts_s_per_GB']:.2f}",
            f"{row['median_sum_s_per_GB']:.2f}",
            spread(row, "sum_s_per_GB"))


def show(*words):
    print("  {:22}{:>8} {:18}{:>7}{:>7}{:>7}{:>7} {}".format(*words).rstrip())


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="ascii") as f:
        rows = json.load(f)
    print(HEAD)
    last = None
    for row in rows:
        what = (f"{row['workers']} workers, {size(row['bytes'])}, "
                f"payload {row['payload']}")
        if what != last:
            print(f"\n  {what}")
            show("", "MB/s", "", "all", "own", "hosts", "sum", "")
            last = what
        show(row["system"], *cells(row))


if __name__ == "__main__":
    main()
