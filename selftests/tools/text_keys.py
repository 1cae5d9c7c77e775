# SPDX-License-Identifier: GPL-2.0
"""The keys that the tool prints with -json, beside those that its pages name: what
is printed must be named, and what is named come.  atp perf: test_perf.py."""

import json
import subprocess

from doc_blocks import named
from live import expect, wait_for
from rack import inside
from test_sockets import Rank
from text_rack import INTERRUPT, JOB, LIMIT, Terminal

PAGES = {
    "job": named("atp-job.8", "JSON"),
    "sock": named("atp-sock.8", "JSON"),
    "stats": named("atp-stats.8", "JSON"),
    "switch": named("atp-switch.8", "OUTPUT"),
    "top": named("atp-top.8", "JSON"),
    "monitor": named("atp-monitor.8", "JSON"),
    "check": named("atp-check.8", "OUTPUT"),
}
# Counters have lists of their own, on other pages, too
COUNTERS = named("atp-stats.8", "COUNTERS")
SHARED = {
    "job": COUNTERS,
    "stats": COUNTERS,
    "top": COUNTERS | PAGES["sock"] | PAGES["switch"],
}
# What does not come here: the PS is never silent; what another page calls ranks
NOT_HERE = {"job": {"silent_ms"}, "top": {"blamed"}}


class Found:
    """Keys, by the object of the command."""

    def __init__(self):
        self.keys = {name: set() for name in PAGES}

    def add(self, name, value):
        if isinstance(value, dict):
            self.keys[name] |= set(value)
            value = list(value.values())
        if isinstance(value, list):
            for each in value:
                self.add(name, each)

    def say(self, host, words, bad=0):
        """A document is a line.  Status bad: there is something to be found."""
        with inside(host):
            done = subprocess.run(["atp", "-json", *words.split()], text=True,
                                  stdout=subprocess.PIPE, check=False,
                                  timeout=LIMIT)
        expect((words, done.returncode), (words, bad))
        name = next(word for word in words.split() if word in PAGES)
        for line in done.stdout.splitlines():
            self.add(name, json.loads(line))

    def wrong(self):
        found = []
        for name, keys in self.keys.items():
            may = PAGES[name] | SHARED.get(name, set())
            must = PAGES[name] - NOT_HERE.get(name, set())
            found += [f"atp -json {name}: {key} is on no page"
                      for key in sorted(keys - may)]
            found += [f"atp-{name}(8): {key} does not come"
                      for key in sorted(must - keys)]
        return found


def stalled(state):
    """A switch keeps what has come to it until it is sent again."""
    wait_for(lambda: state.on(["ps"], "atp job stall")[0], "stall")


def while_it_runs(state, found):
    state.ensure("-switch_job switch_job run")
    stalled(state)
    found.say("ps", "-stats job show")
    found.say("ps", "job stall")
    found.say("w0", "-stats sock")
    found.say("w0", "stats")
    found.say("ps", f"stats job {JOB}")
    found.say("switch", "switch show")
    found.say("switch", f"switch show job {JOB}")
    for host in ("ps", "w0", "switch"):
        found.say(host, "top interval 1ms count 1")


def while_it_fails(state, found):
    """A rank leaves, and another one has an event and a state of that."""
    terminal = Terminal("w0", "atp -json -timestamp monitor")
    try:
        terminal.shows("job-changed", lambda: state.on(
            ["w0"], f"atp job set {JOB} timeout 30s"))
        state.run.ranks[1].close()
        terminal.shows('"failed".*\n', lambda: None)
        terminal.end(INTERRUPT)
    finally:
        terminal.close()
    for line in terminal.seen.splitlines():
        if line.startswith("{"):
            found.add("monitor", json.loads(line))
    found.say("w0", "sock")
    state.no_run()


def while_it_joins(found):
    rank = Rank(0)
    rank.begin()
    found.say("w0", "sock")
    rank.close()


def with_what_else_a_job_has(state, found):
    state.ensure("server")
    state.on(["ps"], f"atp job set {JOB} gid staff")
    found.say("ps", "job show")
    rank = Rank(0)
    rank.begin()
    stalled(state)
    found.say("ps", "job stall")
    rank.close()


def of_what_is_bad(found):
    """A job and a port that are none."""
    found.say("w0", f"check job {JOB}")
    found.say("w0", f"check job {JOB + 1}", bad=1)
    found.say("switch", "switch check dev lo", bad=2)


def keys_of(state):
    """What is wrong with them."""
    found = Found()
    while_it_runs(state, found)
    while_it_fails(state, found)
    while_it_joins(found)
    of_what_is_bad(found)
    with_what_else_a_job_has(state, found)
    return found.wrong()
