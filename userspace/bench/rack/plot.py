#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""What was measured in the rack, as a picture.

usage: plot.py ROWS.json PICTURE.png

A line for each bed of which there are rows, a column for each number of workers.
"""
import json
import sys

import matplotlib
matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402
from sizes import size  # noqa: E402

PARTS = ("workers", "switch", "ps")


def unique(rows, key):
    return list(dict.fromkeys(row[key] for row in rows))


def what(row):
    """What a group of bars is of"""
    if "payload" in row:
        return f"{size(row['bytes'])}\nby {row['payload']} B"
    return size(row["bytes"])


def bars(axes, rows, value, spread):
    """A group per size, in it a bar per system."""
    systems = unique(rows, "system")
    sizes = list(dict.fromkeys(map(what, rows)))
    width = 0.8 / len(systems)
    for n, system in enumerate(systems):
        own = [r for r in rows if r["system"] == system]
        at = [sizes.index(what(r)) + (n - (len(systems) - 1) / 2) * width
              for r in own]
        heights = [value(r) for r in own]
        errors = [[h - spread(r)[0] for h, r in zip(heights, own)],
                  [spread(r)[1] - h for h, r in zip(heights, own)]]
        axes.bar(at, heights, width, yerr=errors, capsize=2, label=system)
    axes.set_xticks(range(len(sizes)), sizes)


def limited(axes, rows):
    def share(bps, row):
        return bps / row["limit_Bps"]

    bars(axes, rows, lambda r: share(r["median_Bps"], r),
         lambda r: (share(r["min_Bps"], r), share(r["max_Bps"], r)))
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_ylim(0, 1.1)
    axes.set_ylabel("share of the link's payload")
    mbit = rows[0]["link_Bps"] * 8 / 1e6
    axes.set_title(f"{rows[0]['workers']} workers, {mbit:g} Mbit/s")


def free(axes, rows):
    bars(axes, rows, lambda r: r["median_Bps"] / 1e6,
         lambda r: (r["min_Bps"] / 1e6, r["max_Bps"] / 1e6))
    axes.set_ylabel("MB/s")
    axes.set_title(f"{rows[0]['workers']} workers, no limit")


def cpu(axes, rows):
    names = [r["system"] for r in rows]
    below = [0] * len(rows)
    for part in PARTS:
        heights = [r[f"cpu_{part}_s_per_GB"] for r in rows]
        axes.bar(names, heights, bottom=below, label=part)
        below = [a + b for a, b in zip(below, heights)]
    axes.tick_params(axis="x", rotation=30)
    axes.set_ylabel("CPU s per GB")
    axes.set_title(f"{rows[0]['workers']} workers, {size(rows[0]['bytes'])}, "
                   "no limit")


def native(axes, rows):
    bars(axes, rows, lambda r: r["median_sum_s_per_GB"],
         lambda r: (r["min_sum_s_per_GB"], r["max_sum_s_per_GB"]))
    axes.set_ylabel("CPU s per GB")
    axes.set_title(f"{rows[0]['workers']} workers, PS and program, User-mode "
                   "Linux")


DRAW = {"rack": limited, "free": free, "parts": cpu, "uml": native}


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="ascii") as f:
        rows = json.load(f)
    rows = [r for r in rows if r["bed"] in DRAW]
    workers = sorted(unique(rows, "workers"))
    lines = [bed for bed in DRAW if bed in unique(rows, "bed")]
    if not lines:
        return
    figure, grid = pyplot.subplots(len(lines), len(workers), squeeze=False,
                                   figsize=(6 * len(workers), 4 * len(lines)))
    for bed, line in zip(lines, grid):
        for axes, count in zip(line, workers):
            own = [r for r in rows
                   if r["bed"] == bed and r["workers"] == count]
            if own:
                DRAW[bed](axes, own)
                axes.legend(fontsize="x-small")
            else:
                axes.set_axis_off()
    figure.tight_layout()
    figure.savefig(sys.argv[2], dpi=120)
    print(f"picture in {sys.argv[2]}")


if __name__ == "__main__":
    main()
