#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""What bench.py has measured, as text.

usage: table.py ROWS.json
"""
import json
import sys

from sizes import size


def speed(row):
    low, high = row["min_Bps"] / 1e6, row["max_Bps"] / 1e6
    return f"{row['median_Bps'] / 1e6:9.3f} ({low:.3f} to {high:.3f})"


def cost(row, name="cpu_s_per_GB"):
    """CPU time, in as many digits as it is known by"""
    return "{:.0f} ({:.0f} to {:.0f})".format(
        *(row[f"{which}{name}"] for which in ("", "min_", "max_")))


def most_bytes(row):
    """Of the links, the one with the most in one direction, per byte that is
    added: at the workers, and at the PS."""
    links = row["link_bytes"]
    worker = max(max(ways) for host, ways in links.items() if host != "ps")
    return worker / row["bytes"], max(links["ps"]) / row["bytes"]


def limited(rows):
    first = rows[0]
    link = first["link_Bps"]
    print(f"\nLinks limited to {link * 8 / 1e6:g} Mbit/s in each direction, "
          f"payload {first['limit_Bps'] / 1e6:.3f} MB/s")
    redirected, came, left = (first[f"flood_{what}_Bps"] / link
                              for what in ("redirected", "in", "out"))
    print(f"  of {redirected:.2f} times that or more, redirected to each host "
          f"by XDP, {came:.3f} came in\n  at most; hosts that sent as much as "
          f"they could sent {left:.3f} at most")
    print("  MB/s: median (least to most); limit: share of the link's payload; "
          "link, PS: bytes\n  on the busiest direction of a worker's and the "
          "PS's link, per byte of the tensor")
    print(f"  {'':23} {'MB/s':>9} {'':19} limit   link     PS")
    for row in rows:
        worker, ps = most_bytes(row)
        share = row["median_Bps"] / row["limit_Bps"]
        yield row, (f"{speed(row):30} {share:6.1%} {worker:6.2f} {ps:6.2f}")


def unlimited(rows):
    print("\nLinks as fast as they are")
    print("  median (least to most); CPU: seconds of all CPUs per GB of the "
          "tensor")
    print(f"  {'':23} {'MB/s':>9} {'':20} CPU")
    for row in rows:
        yield row, f"{speed(row):30} {cost(row)}"


def by_parts(rows):
    print("\nLinks as fast as they are, one CPU for the part that is measured")
    print("  CPU seconds per GB of the tensor, median (least to most)")
    print(f"  {'':23} {'workers':17} {'switch':17} PS")
    for row in rows:
        yield row, " ".join(f"{cost(row, f'cpu_{part}_s_per_GB'):17}"
                            for part in ("workers", "switch", "ps")).rstrip()


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="ascii") as f:
        rows = json.load(f)
    for bed, table in (("rack", limited), ("free", unlimited),
                       ("parts", by_parts)):
        chosen = sorted((r for r in rows if r["bed"] == bed),
                        key=lambda r: (r["workers"], r["bytes"]))
        last = None
        for row, line in table(chosen) if chosen else ():
            head = f"\n  {row['workers']} workers, {size(row['bytes'])}"
            if head != last:
                print(head)
                last = head
            print(f"  {row['system']:23} {line}")


if __name__ == "__main__":
    main()
