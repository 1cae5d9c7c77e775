#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""All-reduce in a rack of namespaces, by ATP and by others; run in the virtual
machine.

usage: bench.py PROGRAMS FILE MBIT WORKERS,... BYTES,... ROUNDS BED,...

PROGRAMS is the folder of the members, FILE gets rows as JSON.  In the bed
"rack" all links are limited to MBIT Mbit/s in each direction, in "free" they
are not; "parts" is the same, but measures what workers, switch and PS cost.
Systems take turns in every round.
"""
import json
import statistics
import sys
import tempfile
import time

import links
from cpu import PARTS, Isolation, Meter, one_cpu
from systems import SYSTEMS, rack

LEAD = 0.1          # seconds for all members to hear of the start
ONCE = 1 << 20      # of shorter tensors there are several in a row
LONG = 16 << 20
FLOOD = 2           # seconds


class Bench:
    def __init__(self, programs, mbit, workers, sizes, rounds):
        self.mbit, self.workers = mbit, workers
        self.sizes, self.rounds = sizes, rounds
        self.work = tempfile.mkdtemp(prefix="bench.")
        self.systems = [kind(w, programs, self.work)
                        for w in workers for kind in SYSTEMS]
        self.links = links.Links(max(workers))
        self.isolation = Isolation(self.links.hosts, self.systems)
        self.part = None
        self.seed = 0
        self.samples = {}
        self.fixed = {}

    def start(self):
        rack("up", max(self.workers), links.MTU)
        for system in self.systems:
            system.start()

    def stop(self):
        for system in self.systems:
            system.stop()
        rack("down")

    def measure(self, system, size):
        number = max(1, min(4, ONCE // size))
        self.seed += 1
        system.ask(f"fill {size} {number} {self.seed}", "ready")
        before = self.links.quiet()
        meter = Meter()
        begin = time.monotonic_ns() + int(LEAD * 1e9)
        ends = system.ask(f"go {begin}", "done")
        busy = meter.busy()
        moved = links.difference(before, self.links.quiet())
        system.ask("check", "right")
        seconds = (max(map(int, ends)) - begin) / 1e9
        return {
            "Bps": number * size / seconds,
            "cpu": sum(busy) / number / size * 1e9,
            "cpu1": busy[1] / number / size * 1e9,
            "part": self.part,
            "link_bytes": {host: [n / number for n in ways]
                           for host, ways in moved.items()},
        }

    def turn(self, bed, systems, sizes):
        for system in systems:
            for size in sizes:
                sample = self.measure(system, size)
                key = bed, system.workers, size, system.name
                self.samples.setdefault(key, []).append(sample)
                print(f"{bed}: {system.workers} workers, {size} bytes, "
                      f"{system.name}: {sample['Bps'] / 1e6:.3f} MB/s",
                      flush=True)

    def turns(self, bed, switch, sizes):
        """Of those that have a switch, or of all others."""
        systems = [s for s in self.systems if s.switch == switch]
        if bed == "rack":
            with one_cpu(self.links.hosts, switch):
                self.turn(bed, systems, sizes)
            return
        if bed == "free":
            self.turn(bed, systems, sizes)
            return
        for self.part in PARTS:
            self.isolation.apply(self.part)
            self.turn(bed, systems, sizes)

    def round(self, bed, sizes):
        rack("switch_on")
        self.turns(bed, True, sizes)
        rack("switch_off")
        if bed != "rack":
            self.offload("on")
        self.turns(bed, False, sizes)
        if bed != "rack":
            self.offload("off")

    def offload(self, state):
        """Checksums and segmentation, which a host on a veth has, but must do
        without if the port runs XDP.  On limited links nobody has them, so
        that every packet is as on a wire, and counted so."""
        for host in self.links.hosts:
            links.features(host, "eth0", "tx", state, "sg", state, "tso",
                           state, "gso", state)

    def prove(self):
        """Does what XDP redirects keep to the limit, and what hosts send?  Of
        all hosts, the least that was offered and the most that passed."""
        rack("switch_on")
        system = max((s for s in self.systems if s.switch),
                     key=lambda s: s.workers)
        offered, passed, left = [], [], []
        for host in self.links.hosts:
            came, got = links.flood_redirected(system.job(), system.workers,
                                               host, FLOOD)
            offered.append(came)
            passed.append(got)
            self.links.quiet()
            left.append(links.flood_own(host, FLOOD))
            self.links.quiet()
        link = self.mbit * 1e6 / 8
        self.fixed["rack"] = {
            "limit_Bps": links.payload_limit(self.mbit), "link_Bps": link,
            "flood_redirected_Bps": min(offered), "flood_in_Bps": max(passed),
            "flood_out_Bps": max(left),
        }
        print(f"limit: {link:.0f} B/s; redirected by XDP to a host: "
              f"{min(offered):.0f} or more, of these came in: "
              f"{max(passed):.0f} or less; left a host: {max(left):.0f} or "
              "less", flush=True)
        # what was in an empty queue at first may be a little more
        if max(passed + left) > 1.05 * link or min(offered) < 2 * link:
            sys.exit("links are not limited as they should be, or were not "
                     "tried hard enough to say so")

    def rounds_of(self, bed):
        for _ in range(self.rounds):
            self.round(bed, self.sizes)

    def limited(self):
        links.limit(self.links.hosts, self.mbit)
        self.prove()
        self.rounds_of("rack")
        links.unlimit(self.links.hosts)

    def merge(self):
        """What comes in at the switch's ports is merged, then forwarded."""
        for host in self.links.hosts:
            links.features("switch", host, "gro", "on")

    def unlimited(self):
        self.merge()
        self.fixed["free"] = {"limit_Bps": None}
        self.rounds_of("free")

    def by_parts(self):
        """Of one size, that is long enough for the clock of CPU time."""
        shorter = [size for size in self.sizes if size < LONG]
        size = (shorter or self.sizes)[-1:]
        self.merge()
        self.fixed["parts"] = {"limit_Bps": None}
        for _ in range(self.rounds):
            self.round("parts", size)

    def row(self, bed, workers, size, name):
        samples = self.samples[bed, workers, size, name]

        speeds = [s["Bps"] for s in samples]
        row = {
            "bed": bed, "system": name, "workers": workers, "bytes": size,
            "median_Bps": statistics.median(speeds), **self.fixed[bed],
            "min_Bps": min(speeds), "max_Bps": max(speeds),
            "rounds": len(samples),
            **spread("cpu_s_per_GB", [s["cpu"] for s in samples]),
        }
        if bed == "rack":
            row["link_bytes"] = {
                host: [round(statistics.median(
                    s["link_bytes"][host][way] for s in samples))
                    for way in (0, 1)]
                for host in self.links.hosts}
        if bed == "parts":
            for part in PARTS:
                row.update(spread(f"cpu_{part}_s_per_GB", [
                    s["cpu1"] for s in samples if s["part"] == part]))
        return row

    def rows(self):
        return [self.row(*key) for key in self.samples]


def spread(name, values):
    return {name: statistics.median(values), f"min_{name}": min(values),
            f"max_{name}": max(values)}


def numbers(text):
    return [int(n) for n in text.split(",")]


def main():
    if len(sys.argv) != 8:
        sys.exit(__doc__)
    programs, output, mbit, workers, sizes, rounds, beds = sys.argv[1:]
    bench = Bench(programs, int(mbit), numbers(workers), numbers(sizes),
                  int(rounds))
    # in this order: what the last two change stays so
    kinds = {"rack": bench.limited, "free": bench.unlimited,
             "parts": bench.by_parts}
    wanted = beds.split(",")
    if not set(wanted) <= set(kinds):
        sys.exit(f"BEDS={beds}: there are {', '.join(kinds)} and uml")
    bench.start()
    for bed, measure in kinds.items():
        if bed in wanted:
            measure()
    bench.stop()
    with open(output, "w", encoding="ascii") as f:
        json.dump(bench.rows(), f, indent=1)


if __name__ == "__main__":
    main()
