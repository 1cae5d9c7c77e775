#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""atp top: rates are what the counters say, stuck ranks have names, and a
terminal is left as it was."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
from live import (  # noqa: E402
    FRAGMENT, JOB, LANES, LIMIT, TOP, WORKERS, expect, kill_run, lay_out, rack,
    start_run, tell, text, wait_for, without_module,
)
from rack import atp, inside, run  # noqa: E402
from test_sockets import ATP_DTYPE, INT32, SOL_ATP, Rank  # noqa: E402

ATP = os.path.join(TOP, "build/bin/atp")
SECOND = 1000000000
# a hundred for each round trip of 20 ms: more than there is time for while top
# looks, on any machine
CHUNKS, DEPTH, DELAY = 30000, 100, "10ms"
ROUNDS = 4


def top(host, *words):
    """One that runs beside the test."""
    with inside(host):
        return subprocess.Popen([ATP, *words], stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)


def lines_of(process):
    output, _ = process.communicate(timeout=LIMIT)
    expect((process.returncode, output if process.returncode else ""), (0, ""))
    return [json.loads(line) for line in output.splitlines()]


def keys(value):
    """What the objects in it are made of; the names of counters are those of
    other pages."""
    if isinstance(value, list):
        return set().union(*map(keys, value))
    if not isinstance(value, dict):
        return set()
    return set(value).union(*(
        keys(v) for k, v in value.items() if k not in ("counters", "per_second")
    ))


def explained():
    """The names in the part of the page that is about JSON"""
    with open(os.path.join(TOP, "Documentation/man/atp-top.8"),
              encoding="ascii") as f:
        page = f.read().split("\n.Sh JSON\n")[1]
    lines = re.findall(r"^\.(?:It )?Va (.*)", page, re.M)
    return set(re.findall(r"\w+", " ".join(lines)))


def rate(now, before, interval):
    count = now - before if now >= before else now
    return count * SECOND // interval


def job_rates_hold(before, line):
    job, old, interval = line["jobs"][0], before["jobs"][0], line["interval_ns"]
    now, then = job["counters"], old["counters"]
    for name, value in job["per_second"].items():
        if name != "completed":
            expect((name, value),
                   (name, rate(now[name], then[name], interval)))
    return job, now, then, interval


def rates_are_those_of_the_counters():
    """While all of them work."""
    lay_out()
    rack("netem", "ps", "both", "delay", DELAY)
    work = start_run("--chunks", CHUNKS, "--lanes", LANES, "--depth", DEPTH)
    wait_for(lambda: tell("ps", "stats", "job", JOB)[0]["counters"]
             ["completed"] > DEPTH, "progress")
    words = "-json", "top", "interval", "200ms", "count", str(ROUNDS), "job", \
        str(JOB)
    found = {host: top(host, *words) for host in ("ps", "w0", "switch")}
    found = {host: lines_of(process) for host, process in found.items()}
    kill_run(work)
    rack("netem", "ps", "both")
    for lines in found.values():
        expect(len(lines), ROUNDS)

    for before, line in zip(found["ps"], found["ps"][1:]):
        job, now, then, interval = job_rates_hold(before, line)
        count = now["completed"] - then["completed"]
        expect(job["per_second"]["completed"], count * SECOND // interval)
        expect(job["goodput_Bps"], count * FRAGMENT * SECOND // interval)
    goodput = [line["jobs"][0]["goodput_Bps"] for line in found["ps"]]
    print("# goodput", goodput)
    expect(max(goodput) > 0, True)

    for before, line in zip(found["w0"], found["w0"][1:]):
        job_rates_hold(before, line)
        sock, old = line["sockets"][0], before["sockets"][0]
        expect((sock["rank"], sock["epoch"]), (0, old["epoch"]))
        interval = line["interval_ns"]
        count = sock["una"] - old["una"]
        expect(sock["goodput_Bps"], count * FRAGMENT * SECOND // interval)
        expect(line["jobs"][0]["goodput_Bps"], sock["goodput_Bps"])
        for name in ("sent", "resent"):
            expect(sock["per_second"][name],
                   rate(sock["counters"][name], old["counters"][name],
                        interval))
    expect(bool(found["w0"][0]["sockets"]), True)

    for before, line in zip(found["switch"], found["switch"][1:]):
        expect(line["switch"]["aggregators"], 8)
        job, old = line["switch"]["jobs"][0], before["switch"]["jobs"][0]
        expect(job["id"], JOB)
        for name, value in job["per_second"].items():
            expect((name, value),
                   (name, rate(job["counters"][name], old["counters"][name],
                               line["interval_ns"])))
    expect(sum(line["switch"]["jobs"][0]["per_second"]["aggregated"]
               for line in found["switch"]) > 0, True)

    lines = sum(found.values(), [])
    shown = keys(lines).union(*(line["per_second"] for line in lines))
    for host, what in (("ps", "jobs"), ("w0", "sockets")):
        shown.update(found[host][0][what][0]["per_second"])
    expect({"stall_ms", "srtt_us", "quota", "drops", "answered"} - shown,
           set())
    expect(shown - explained(), set())


class Stuck:
    """A run in which the last rank pushes nothing."""

    def __enter__(self):
        self.ranks = [Rank(rank) for rank in range(WORKERS)]
        for rank in self.ranks:
            rank.begin()
        for rank in self.ranks:
            rank.joined()
            rank.sock.setsockopt(SOL_ATP, ATP_DTYPE, INT32)
        self.ranks[0].push(1, 2, 3)
        return self

    def __exit__(self, *_):
        for rank in self.ranks:
            rank.close()


def it_names_who_is_waited_for():
    last = WORKERS - 1
    with Stuck():
        for host in ("ps", "w0"):
            def waiting(host=host):
                words = "-json", "top", "interval", "1ms", "count", "1"
                return lines_of(top(host, *words))[0]["jobs"][0]["waiting"]
            wait_for(lambda: waiting() == [last], f"rank {last} at {host}")
        table = text("ps", "top", "-b", "interval", "1ms", "count", "1")
        head, row = [line for line in table.splitlines()
                     if line.split()[:2] in (["JOB", "ROLE"], ["7", "ps"])]
        expect(head.endswith("WAITS FOR"), True)
        expect(row[head.index("WAITS FOR"):].split()[:2], [str(last), "for"])
        expect(row.split()[2:4], [f"{WORKERS}/{WORKERS}", "run"])
        table = text("w0", "top", "batch", "interval", "1ms", "count", "1")
        rows = [line.split() for line in table.splitlines()]
        row = next(r for r in rows if r[:3] == [str(JOB), "0", "joined"])
        # one fragment on its way
        expect((row[7], row[-1]), ("1", str(last)))


def batch_is_separated_and_counted():
    table = text("ps", "top", "batch", "interval", "1ms", "count", "3")
    expect(table.count("atp top "), 3)
    expect(len(table.split("\n\n")), 3)
    for one in (["job", "8"], ["8"]):
        table = text("ps", "top", "batch", "interval", "1ms", "count", "1",
                     *one)
        expect([line for line in table.splitlines() if line.startswith("  ")],
               [line for line in table.splitlines() if "WAITS FOR" in line])


class Terminal:
    """A pseudo terminal with a size, and atp top on it."""

    def __init__(self, rows, columns):
        self.master, self.slave = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(self.slave)
        self.seen = b""
        with inside("ps"):
            self.process = subprocess.Popen(
                [ATP, "top", "interval", "50ms"],
                stdin=self.slave, stdout=self.slave, stderr=self.slave,
                env={**os.environ, "TERM": "xterm"}, start_new_session=True,
            )

    def resize(self, rows, columns):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ,
                    struct.pack("HHHH", rows, columns, 0, 0))

    def shows(self, what):
        """Read until it is there."""
        end = time.monotonic() + LIMIT
        while what not in self.seen:
            if self.process.poll() is not None or time.monotonic() > end:
                raise AssertionError((what, self.seen))
            if select.select([self.master], [], [], 1)[0]:
                self.seen += os.read(self.master, 65536)

    def quit(self):
        """Both by key and with the terminal as it was."""
        os.write(self.master, b"q")
        end = time.monotonic() + LIMIT
        while self.process.poll() is None:
            if time.monotonic() > end:
                raise AssertionError("it does not end")
            # who does not read does not let it end
            if select.select([self.master], [], [], 0.1)[0]:
                self.seen += os.read(self.master, 65536)
        expect(self.process.returncode, 0)
        expect(termios.tcgetattr(self.slave), self.before)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)


def a_terminal_shows_it_and_is_left_as_it_was():
    terminal = Terminal(40, 120)
    try:
        terminal.shows(b"atp top")
        terminal.shows(b"GOODPUT")
        terminal.shows(b"ps")
        # what is seen while nobody waits is erased when somebody does
        with Stuck():
            terminal.shows(b" for ")
        terminal.seen = b""
        terminal.resize(1, 1)
        os.killpg(terminal.process.pid, signal.SIGWINCH)
        # it goes on: it draws the whole of a screen again, whatever its size
        terminal.shows(b"a")
        terminal.resize(5, 30)
        os.killpg(terminal.process.pid, signal.SIGWINCH)
        terminal.shows(b"JOB")
        expect(b"GOODPUT" in terminal.seen, False)
        terminal.quit()
    finally:
        terminal.close()


def a_switch_needs_no_module():
    words = "top", "batch", "interval", "1ms", "count", "1"
    with without_module("ps", *(f"w{rank}" for rank in range(WORKERS))):
        table = text("switch", *words)
        head, _, switch, columns, row = table.splitlines()
        expect(head.endswith(": the module is not loaded"), True)
        expect(bool(re.match(r"switch: \d of 8 aggregators", switch)), True)
        expect((columns.split()[0], row.split()[0]), ("JOB", str(JOB)))
        line, = lines_of(top("switch", "-json", *words))
        expect((line["jobs"], line["sockets"], set(line["per_second"].values())),
               ([], [], {0}))
        expect([job["id"] for job in line["switch"]["jobs"]], [JOB])
        # where there is none either
        expect(atp("ps", *words), (
            2, "Error: this kernel does not speak ATP; "
            "load the module: modprobe atp\n",
        ))


if __name__ == "__main__":
    try:
        code = run((
            rates_are_those_of_the_counters,
            it_names_who_is_waited_for,
            batch_is_separated_and_counted,
            a_terminal_shows_it_and_is_left_as_it_was,
            a_switch_needs_no_module,
        ))
    finally:
        rack("down")
    sys.exit(code)
