#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The PS's host is a machine of its own: its module goes and comes, its power
fails, it comes back. The kernels of the two machines differ.

usage: test_machines.py KERNEL_OF_WORKERS[:KERNEL_OF_PS]...
"""

import errno
import json
import sys

from machines import HOSTS, JOB, RACK, WORKERS, Rack
from rack import run

WORKER = f"build/selftests/rack/worker --job {JOB} --workers {WORKERS}"
# At most twenty fragments in a round trip: a minute and more
ENDLESS = "--chunks 30000 --lanes 8 --depth 20 --blocking --limit 600"


def aggregated(rack):
    """What the switch has added so far."""
    counters = rack.workers.do(f"{RACK} switch_counters {JOB}")
    values = dict(line.split() for line in counters.splitlines())
    return int(values.get("aggregated", 0))


def sums_are_exact(rack):
    """Bit for bit, all of them, and some were added by the switch."""
    before = aggregated(rack)
    output = rack.workers.do(f"{WORKER} --chunks 6 --lanes 4096 --dtype mixed "
                             f"--values edge --limit 120")
    print("#", output.strip())
    if not output.startswith("right") or aggregated(rack) <= before:
        raise AssertionError(output)


def begin(rack, error):
    """A run in which each rank sleeps in a call; it must end like that."""
    for host in HOSTS:
        rack.workers.do(f"build/bin/atp -netns atp-{host} -json monitor "
                        f"job {JOB} >/run/events-{host} 2>&1 &")
        # who listens hears a change
        rack.workers.until(f"build/bin/atp -netns atp-{host} job set {JOB} "
                           f"uid 0; grep -q job-changed /run/events-{host}")
    rack.workers.do(f"{WORKER} {ENDLESS} --expect {error}:0 "
                    f">/run/worker 2>&1 &")
    rack.ps.until(f"build/bin/atp -json job show {JOB} | "
                  "grep '\"running\":true' | "
                  "grep -q '\"frontier\":[0-9][0-9][0-9]'")


def ended(rack, reason):
    """Every rank has got its error, its error queue says the same (worker.c
    compares), and so does the event of its host."""
    rack.workers.until("! pidof worker")
    output = rack.workers.do("cat /run/worker")
    told = [line.split() for line in output.splitlines()
            if line.startswith("told")]
    if not output.startswith("right") or len(told) != WORKERS:
        raise AssertionError(output)
    for rank, host in enumerate(HOSTS):
        rack.workers.until(f"grep -q failed /run/events-{host}")
        events = rack.workers.do(f"grep failed /run/events-{host}")
        event = json.loads(events.splitlines()[0])
        got = [event[name] for name in ("rank", "reason", "ranks", "fragment")]
        sequence = int(told[rank][told[rank].index("sequence") + 1])
        if got != [rank, reason, [], sequence]:
            raise AssertionError((event, told[rank]))
    rack.workers.do("kill $(pidof atp)")


def sums_across_the_cable_are_exact(rack):
    rack.boot()
    sums_are_exact(rack)


def a_module_that_is_unloaded_ends_all(rack):
    begin(rack, errno.EIDRM)
    rack.ps.do("rmmod atp")
    ended(rack, "removed")


def a_module_that_is_loaded_again_works(rack):
    rack.load_ps()
    sums_are_exact(rack)


def a_power_failure_ends_all(rack):
    """Nobody says so: the PS is silent for the job's timeout."""
    rack.set_timeout(8)
    begin(rack, errno.EHOSTDOWN)
    rack.ps.power_off()
    ended(rack, "ps-silent")


def a_machine_that_comes_back_works(rack):
    rack.boot_ps()
    rack.set_up_ps()
    sums_are_exact(rack)


def a_machine_that_comes_back_soon_has_forgotten(rack):
    """Within the timeout: it says itself that it knows no such run."""
    rack.set_timeout(600)
    begin(rack, errno.ESTALE)
    rack.ps.power_off()
    rack.boot_ps()
    rack.set_up_ps()
    ended(rack, "epoch")
    sums_are_exact(rack)


def nothing_was_wrong_in_either_log(rack):
    rack.ps.end()
    rack.workers.end()


STORY = (
    sums_across_the_cable_are_exact,
    a_module_that_is_unloaded_ends_all,
    a_module_that_is_loaded_again_works,
    a_power_failure_ends_all,
    a_machine_that_comes_back_works,
    a_machine_that_comes_back_soon_has_forgotten,
    nothing_was_wrong_in_either_log,
)


class Teller:
    """Tells the story to one pair of machines after the other."""

    def __init__(self, kernels):
        self.kernels = kernels
        self.rack = Rack(kernels)

    def close(self):
        self.rack.close()

    def retell_up_to(self, chapter):
        self.close()
        self.rack = Rack(self.kernels)
        for before in STORY[:STORY.index(chapter)]:
            before(self.rack)

    def tell(self, chapter):
        """A fault of the emulator is nobody's: then all begins anew."""
        for attempt in range(4):
            try:
                if attempt:
                    self.retell_up_to(chapter)
                chapter(self.rack)
                return
            except Exception:
                faults = [machine.report() for machine in self.rack.machines
                          if machine.was_booted_again()]
                if attempt == 3 or not faults:
                    raise
                print("# again:", *faults[0].splitlines()[-1:])

    def tests(self):
        def test(chapter):
            def tell():
                self.tell(chapter)

            tell.__name__ = f"{':'.join(self.kernels)} {chapter.__name__}"
            return tell

        return [test(chapter) for chapter in STORY]


def pair(word):
    """Two kernels, or one for both machines"""
    first, _, second = word.partition(":")
    return first, second or first


def main():
    tellers = [Teller(pair(word)) for word in sys.argv[1:]]
    del sys.argv[1:]
    try:
        return run([test for teller in tellers for test in teller.tests()])
    finally:
        for teller in tellers:
            teller.close()


if __name__ == "__main__":
    sys.exit(main())
