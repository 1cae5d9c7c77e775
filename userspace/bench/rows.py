#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Put the rows of all parts of the benchmark into one file.

usage: rows.py OUT PART.json...

A row says at least where it was measured (bed), what (system), for how many
workers and bytes, how fast, how fast the link would allow (null: there is no
limit), and at which cost.
"""
import json
import sys


NEEDED = ("bed", "system", "workers", "bytes", "median_Bps", "limit_Bps",
          "cpu_s_per_GB")


def main(out, parts):
    rows = []
    for part in parts:
        with open(part, encoding="ascii") as f:
            rows += json.load(f)
    for row in rows:
        missing = {name for name in NEEDED
                   if row.get(name) is None and
                   (name != "limit_Bps" or name not in row)}
        if missing:
            sys.exit(f"rows.py: no {', '.join(sorted(missing))} in {row}")
    with open(out, "w", encoding="ascii") as f:
        json.dump(rows, f, indent=1)
        f.write("\n")
    print(f"{len(rows)} rows in {out}")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])
