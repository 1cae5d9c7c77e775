#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Put the rows of all parts of the benchmark into one file.

usage: rows.py OUT PART.json...

A row says at least where it was measured (bed), what (system) and for how many
bytes.
"""
import json
import sys


def main(out, parts):
    rows = []
    for part in parts:
        with open(part, encoding="ascii") as f:
            rows += json.load(f)
    for row in rows:
        missing = {"bed", "system", "bytes"} - row.keys()
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
