#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""What all-reduce costs the hosts of a rack, by ATP and by others; run in
User-mode Linux (run.py).

usage: bench.py PROGRAMS FILE WORKERS,... BYTES,... MIB ROUNDS

PROGRAMS is the folder of the members, FILE gets rows as JSON.  A measurement is
of as many tensors of so many BYTES as there are in MIB, one after the other, but
of no more than 96.  Systems take turns in every round.
"""
import itertools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import termios
import time
import tty

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "rack"))
import cards  # noqa: E402
import links  # noqa: E402
import systems  # noqa: E402
from costs import per_gb  # noqa: E402
from systems import rack  # noqa: E402

LEAD = 0.1          # seconds for all members to hear of the start
MOST = 96           # tensors: ranks that poll take a fourth of a second for each
MTUS = {1400: 1500, 3072: 3200}
OFFLOADS = ("tx", "sg", "tso", "gso")
# of samples, of rows: throughput; CPU time of all, of kernel and programs
# alone; of that the switch's ports, the cards, and the rest
COLUMNS = {"Bps": "Bps", "cpu": "cpu_s_per_GB", "own": "own_s_per_GB",
           "switch": "switch_s_per_GB", "cards": "cards_s_per_GB",
           "hosts": "hosts_s_per_GB"}


class AtpPs(systems.AtpPs):
    fragment = 0    # bytes, set before it starts

    def launch(self):
        # a loaded machine is not a dead host
        rack("job_add", self.job(), self.workers, 4, "timeout", "60s",
             "fragment", self.fragment)
        systems.System.launch(self)


class AtpSwitch(AtpPs):
    name = "ATP, switch"
    first_job = 200
    switch = True


class AtpCopies(AtpSwitch):
    """Its user may lock no memory, so libatp copies chunks."""
    name = "ATP, switch, copies"
    first_job = 300

    def words(self, rank):
        return ("prlimit", "--memlock=0", "setpriv",
                "--bounding-set=-ipc_lock", *super().words(rank))


class GlooRingPlain(systems.GlooRing):
    name = "Gloo, ring, no GSO"


SYSTEMS = (AtpSwitch, AtpCopies, AtpPs, systems.GlooRing, GlooRingPlain,
           systems.GlooHalving, systems.OpenMpi, systems.TcpPs)


class Clock:
    """CPU seconds that this kernel and its programs have taken of the machine:
    (their own, the machine's for them)"""

    def __init__(self):
        self.port = open("/dev/ttyS0", "r+b", buffering=0)
        tty.setraw(self.port, termios.TCSANOW)

    def read(self):
        self.port.write(b"\n")
        line = b""
        while not line.endswith(b"\n"):
            line += self.port.read(1)
        return tuple(map(float, line.split()))


class Bench:
    def __init__(self, programs, workers, sizes, total, rounds):
        self.programs, self.workers = programs, workers
        self.sizes, self.total, self.rounds = sizes, total, rounds
        self.clock = Clock()
        self.samples = {}
        self.seed = 0

    def measure(self, rack_links, size, system):
        self.seed += 1
        number = max(1, min(MOST, self.total // size))
        done = number * size
        system.ask(f"fill {size} {number} {self.seed}", "ready")
        rack_links.quiet()
        others = cards.seconds(rack_links.hosts)
        before = self.clock.read()
        begin = time.monotonic_ns() + int(LEAD * 1e9)
        ends = system.ask(f"go {begin}", "done")
        after = self.clock.read()
        ports, card = ((b - a) / done * 1e9 for a, b in
                       zip(others, cards.seconds(rack_links.hosts)))
        rack_links.quiet()
        system.ask("check", "right")
        own, machine = ((b - a) / done * 1e9 for a, b in zip(before, after))
        speed = done * 1e9 / (max(map(int, ends)) - begin)
        return {"Bps": speed, **per_gb(own, machine, ports, card, speed)}

    def turn(self, rack_links, payload, size, system):
        rack("switch_on" if system.switch else "switch_off")
        for host in rack_links.hosts:
            links.features(host, "eth0", *(
                word for name in OFFLOADS for word in
                (name, "off" if isinstance(system, GlooRingPlain) else "on")))
        sample = self.measure(rack_links, size, system)
        key = system.workers, size, payload, system.name
        self.samples.setdefault(key, []).append(sample)
        print(f"uml: {system.workers} workers, {size} bytes, "
              f"payload {payload}, {system.name}: "
              f"{sample['Bps'] / 1e6:.1f} MB/s, "
              f"{sample['cpu']:.2f} CPU s per GB, {sample['own']:.2f} of its "
              f"own: hosts {sample['hosts']:.2f}, switch {sample['switch']:.2f}, "
              f"cards {sample['cards']:.2f}", flush=True)

    def rounds_of(self, workers, payload):
        AtpPs.fragment = payload
        with tempfile.TemporaryDirectory(prefix="bench.") as work:
            rack("up", workers, MTUS[payload])
            rack_links = links.Links(workers)
            cards.install(rack_links.hosts, MTUS[payload])
            running = [kind(workers, self.programs, work) for kind in SYSTEMS]
            for system in running:
                system.start()
            for _ in range(self.rounds):
                for size, system in itertools.product(self.sizes, running):
                    self.turn(rack_links, payload, size, system)
            for system in running:
                system.stop()
            rack("down")

    def run(self):
        for workers in self.workers:
            for payload in MTUS:
                self.rounds_of(workers, payload)

    def row(self, workers, size, payload, name):
        samples = self.samples[workers, size, payload, name]

        def all_of(value):
            return [s[value] for s in samples]

        row = {
            "bed": "uml", "system": name, "workers": workers,
            "bytes": size, "payload": payload, "limit_Bps": None,
            "rounds": len(samples),
            "switched": name in (AtpSwitch.name, AtpCopies.name),
        }
        for value, column in COLUMNS.items():
            row[f"median_{column}"] = statistics.median(all_of(value))
            row[f"min_{column}"] = min(all_of(value))
            row[f"max_{column}"] = max(all_of(value))
        return row

    def rows(self):
        # a heading for each number of workers, size and payload
        return [self.row(*key) for key in
                sorted(self.samples, key=lambda key: key[:3])]


def main():
    if len(sys.argv) != 7:
        sys.exit(__doc__)
    programs, output, workers, sizes, mib, rounds = sys.argv[1:]
    bench = Bench(programs, list(map(int, workers.split(","))),
                  list(map(int, sizes.split(","))), int(mib) << 20,
                  int(rounds))
    bench.run()
    with open(output, "w", encoding="ascii") as f:
        json.dump(bench.rows(), f, indent=1)


if __name__ == "__main__":
    main()
