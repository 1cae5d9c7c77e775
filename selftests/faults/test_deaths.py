#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Workers and the PS are killed, stopped, cut off, forget, and come back.

usage: test_deaths.py [WORD]...	those with such a word in their name
       test_deaths.py minute	a worker stands still for a whole minute
"""

import errno
import json
import os
import queue
import signal
import subprocess
import sys
import threading

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(here, "../lib"), os.path.join(here, "../rack")]
from atptest import LIMIT, wait_for  # noqa: E402
from rack import TOP, atp, inside, rack, run  # noqa: E402
from test_sockets import (  # noqa: E402
    ATP_DTYPE, INT32, LEFT, REMOVED, SILENT, SOL_ATP, STATE_FAILED,
    Rank, expect,
)

JOB = 7
WORKERS = 3
LAST = WORKERS - 1
TIMEOUT = 3000


def tell(host, *words):
    """What the tool says, as JSON."""
    status, output = atp(host, "-json", *words)
    expect((status, output if status else ""), (0, ""))
    return json.loads(output)


def job(timeout=TIMEOUT):
    for known in rack("jobs").splitlines():
        rack("job_del", known.split()[0])
    rack("job_add", JOB, WORKERS, 4, "fragment", 248, "timeout", timeout)


class Workers:
    """Some ranks, each a process, that compare every sum."""

    def __init__(self, first, last, *words):
        # no limit of their own: it is the job's that is tested
        self.process = subprocess.Popen(
            [os.path.join(TOP, "build/selftests/rack/worker"),
             "--job", str(JOB), "--workers", str(WORKERS),
             "--ranks", f"{first}-{last}", "--limit", "600",
             *map(str, words)],
            stdout=subprocess.PIPE, text=True, start_new_session=True,
        )

    def signal(self, number):
        os.killpg(self.process.pid, number)

    def ended(self, word="right"):
        """All of it has ended, as it should."""
        output, _ = self.process.communicate(timeout=LIMIT)
        if self.process.returncode or not output.startswith(word):
            raise AssertionError(output)

    def kill(self):
        if self.process.poll() is None:
            self.signal(signal.SIGKILL)
            self.process.communicate()


class Monitor:
    """The events of a host."""

    def __init__(self, host):
        self.host = host
        self.lines = queue.Queue()
        with inside(host):
            self.process = subprocess.Popen(
                [os.path.join(TOP, "build/bin/atp"), "-json", "monitor",
                 "job", str(JOB)],
                stdout=subprocess.PIPE, text=True,
            )
        threading.Thread(target=self.read, daemon=True).start()
        wait_for(self.heard_change, "monitor that listens")

    def read(self):
        for line in self.process.stdout:
            self.lines.put(json.loads(line))

    def heard_change(self):
        expect(atp(self.host, "job", "set", JOB, "uid", 0)[0], 0)
        try:
            return self.lines.get(timeout=1)["event"] == "job-changed"
        except queue.Empty:
            return False

    def event(self, name, reason):
        """The next event of this name, if it has a reason."""
        while True:
            event = self.lines.get(timeout=LIMIT)
            expect(event["job"], JOB)
            if event["event"] == name and bool(event.get("reason")) == reason:
                return event

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def ps_job():
    return tell("ps", "job", "show", JOB)[0]


def going():
    """The run has come some way."""
    start = wait_for(lambda: ps_job()["running"] and ps_job(), "run")
    wait_for(lambda: ps_job()["frontier"] > start["frontier"] + 50,
             "progress")


def stalls(host):
    return tell(host, "job", "stall", JOB)


def stall_names(rank):
    """PS and workers say which fragment waits, and for whom."""

    def at(host):
        for stall in stalls(host):
            waiting = [w["rank"] for w in stall["waiting"]]
            if stall["state"] == "stalled" and waiting == [rank]:
                expect(stall["id"], JOB)
                return stall["fragment"]
        return None

    # what waits for a moment only may be another one
    def both():
        fragment = at("ps")
        if fragment is None or fragment != at("w0") or \
                fragment != ps_job()["frontier"]:
            return None
        return (fragment,)

    return wait_for(both, f"stall that names {rank} at PS and worker")[0]


# One fragment each, a hundred for each round trip of 20 ms: more than there is
# time for, on any machine
ENDLESS = ("--chunks", 30000, "--lanes", 62, "--depth", 100)
DELAY = ("delay", "10ms")


def a_run_works(*words):
    workers = Workers(0, LAST, "--chunks", 6, "--lanes", 4096, *words)
    try:
        workers.ended()
    finally:
        workers.kill()


class Death:
    """A run in which something is done to the last worker, or to the PS."""

    def __init__(self, error, ranks, own=None):
        self.others = Workers(0, LAST - 1, *ENDLESS,
                              "--expect", f"{error}:{ranks}")
        words = ("--expect", f"{own[0]}:{own[1]}") if own else ()
        self.last = Workers(LAST, LAST, *ENDLESS, *words)

    def __enter__(self):
        going()
        return self

    def __exit__(self, *_):
        self.others.kill()
        self.last.kill()


def a_killed_worker_is_named_and_rejoins():
    job()
    monitor = Monitor("ps")
    try:
        for _ in range(2):
            with Death(errno.ECONNRESET, 1 << LAST) as death:
                death.last.kill()
                death.others.ended()
            event = monitor.event("ended", True)
            expect((event["reason"], event["ranks"]), ("left", [LAST]))
            a_run_works()
    finally:
        monitor.close()


def a_dead_host_is_named_by_all():
    job()
    at_ps, at_worker = Monitor("ps"), Monitor("w0")
    try:
        with Death(errno.ETIMEDOUT, 1 << LAST,
                   own=(errno.ETIMEDOUT, 0)) as death:
            rack("link", f"w{LAST}", "down")
            event = at_ps.event("stalled", False)
            expect(event["ranks"], [LAST])
            stuck = event["fragment"]
            death.others.ended()
            death.last.ended()
        event = at_ps.event("ended", True)
        expect((event["reason"], event["ranks"], event["fragment"]),
               ("silent", [LAST], stuck))
        event = at_worker.event("failed", True)
        expect((event["reason"], event["ranks"], event["fragment"]),
               ("silent", [LAST], stuck))
    finally:
        rack("link", f"w{LAST}", "up")
        at_ps.close()
        at_worker.close()
    a_run_works()


def a_stopped_worker_is_waited_for(length=2 * TIMEOUT):
    """Its host answers for it: no timeout of the job ends the run."""
    job()
    workers = [Workers(0, LAST - 1, "--chunks", 600, "--lanes", 620),
               Workers(LAST, LAST, "--chunks", 600, "--lanes", 620)]
    try:
        going()
        workers[1].signal(signal.SIGSTOP)
        stuck = stall_names(LAST)
        # This is how long it stands still, not how long anything takes.
        wait_for(lambda: stalls("ps")[0].get("stall_ms", 0) > length,
                 f"stall of {length} ms")
        expect(stall_names(LAST), stuck)
        workers[1].signal(signal.SIGCONT)
        for some in workers:
            some.ended()
    finally:
        for some in workers:
            some.kill()


def a_worker_that_stops_for_a_moment_is_waited_for():
    a_stopped_worker_is_waited_for(TIMEOUT // 4)


def a_dead_ps_ends_all():
    job()
    try:
        with Death(errno.ETIMEDOUT, 0, own=(errno.ETIMEDOUT, 0)) as death:
            rack("link", "ps", "down")
            death.others.ended()
            death.last.ended()
    finally:
        rack("link", "ps", "up")
    a_run_works()


def ps_job_words():
    words = ["ps", "10.0.0.254"]
    for rank in range(WORKERS):
        words += ["worker", f"10.0.0.{rank + 1}"]
    return [*words, "fragment", 248, "timeout", TIMEOUT]


def a_removed_job_ends_all():
    job()
    with Death(errno.EIDRM, 0, own=(errno.EIDRM, 0)) as death:
        expect(atp("ps", "job", "del", JOB), (0, ""))
        death.others.ended()
        death.last.ended()
    expect(atp("ps", "job", "add", JOB, *ps_job_words()), (0, ""))
    a_run_works()


def a_ps_that_has_forgotten_ends_all():
    """As if its host had crashed and come back: nobody was told."""
    job()
    with Death(errno.ESTALE, 0, own=(errno.ESTALE, 0)) as death:
        rack("netem", "ps", "out", "loss", "100%")
        try:
            expect(atp("ps", "job", "del", JOB), (0, ""))
            expect(atp("ps", "job", "add", JOB, *ps_job_words()), (0, ""))
        finally:
            rack("netem", "ps", "out", *DELAY)
        death.others.ended()
        death.last.ended()
    a_run_works()


class Pending:
    """Calls of a rank that sleep in the kernel."""

    def __init__(self, rank):
        self.rank = rank
        self.sock = rank.sock
        rank.sock.setblocking(True)
        self.outcome = {}
        self.threads = [threading.Thread(target=self.call, args=(name,))
                        for name in ("recv", "send")]
        for thread in self.threads:
            thread.daemon = True
            thread.start()

    def call(self, name):
        try:
            if name == "recv":
                self.sock.recv(4)
            else:
                while True:
                    self.sock.send(bytes(1 << 20))
            self.outcome[name] = 0
        except OSError as error:
            self.outcome[name] = error.errno

    def sleeps(self):
        """No room, nothing to be had, and both calls are still there."""
        return not self.outcome and not self.rank.wait(0x4, 0)

    def ended(self):
        for thread in self.threads:
            thread.join(LIMIT)
        return self.outcome


def every_pending_call_ends(cause, remedy, error, reason, ranks, left=()):
    """On every rank but those that are no more."""
    job()
    socks = [Rank(rank) for rank in range(WORKERS)]
    for rank in socks:
        rank.begin()
    for rank in socks:
        rank.joined()
        rank.sock.setsockopt(SOL_ATP, ATP_DTYPE, INT32)
    try:
        # the last pushes nothing, so that nobody gets a result
        pending = [Pending(rank) for rank in socks[:-1]]
        for calls in pending:
            wait_for(calls.sleeps, "full socket")
        wait_for(lambda: stalls("ps"), "stall")
        cause(socks)
        for calls in pending:
            expect(calls.ended(), {"recv": error, "send": error})
            expect(calls.rank.info(), (STATE_FAILED, reason, ranks))
    finally:
        remedy()
        for rank in socks:
            rank.close()
    a_run_works()


def pending_calls_end_when_a_worker_leaves():
    every_pending_call_ends(lambda socks: socks[-1].close(), lambda: None,
                            errno.ECONNRESET, LEFT, 1 << LAST)


def pending_calls_end_when_a_host_dies():
    every_pending_call_ends(lambda _: rack("link", f"w{LAST}", "down"),
                            lambda: rack("link", f"w{LAST}", "up"),
                            errno.ETIMEDOUT, SILENT, 1 << LAST)


def pending_calls_end_when_the_ps_dies():
    every_pending_call_ends(lambda _: rack("link", "ps", "down"),
                            lambda: rack("link", "ps", "up"),
                            errno.ETIMEDOUT, SILENT, 0)


def pending_calls_end_when_the_job_is_removed():
    every_pending_call_ends(
        lambda _: expect(atp("ps", "job", "del", JOB), (0, "")),
        lambda: expect(atp("ps", "job", "add", JOB, *ps_job_words()), (0, "")),
        errno.EIDRM, REMOVED, 0)


def a_join_that_waits_ends_too():
    """Nobody answers: the PS is dead before the run begins."""
    job()
    rack("link", "ps", "down")
    try:
        rank = Rank(0, blocking=True)
        try:
            rank.join()
            raise AssertionError("joined")
        except OSError as error:
            expect(error.errno, errno.ETIMEDOUT)
        expect(rank.info(), (STATE_FAILED, SILENT, 0))
        rank.close()
    finally:
        rack("link", "ps", "up")
    a_run_works()


def taken():
    return tell("switch", "switch", "show")["occupied"]


def no_aggregator_stays_taken():
    """What a dead run has left in the switch is free for the next one."""
    job()
    rack("switch_resize", "aggregators", 16, "timeout", 500)
    try:
        for host, blame in ((f"w{LAST}", 1 << LAST), ("ps", 0)):
            with Death(errno.ETIMEDOUT, blame,
                       own=(errno.ETIMEDOUT, 0)) as death:
                rack("link", host, "down")
                death.others.ended()
                death.last.ended()
            print(f"# {taken()} aggregators taken without {host}")
            rack("link", host, "up")

            def all_free():
                a_run_works()
                return not taken()
            wait_for(all_free, "free aggregators")
    finally:
        for host in (f"w{LAST}", "ps"):
            rack("link", host, "up")
        rack("switch_resize")


def the_module_comes_back():
    """Every host has forgotten all, the switch goes on."""
    job()
    a_run_works()
    subprocess.run(["modprobe", "-r", "atp"], check=True)
    subprocess.run(["modprobe", "atp"], check=True)
    expect(tell("ps", "job", "show"), [])
    for host in ["ps"] + [f"w{rank}" for rank in range(WORKERS)]:
        expect(atp(host, "job", "add", JOB, *ps_job_words()), (0, ""))
    before = counter("aggregated")
    a_run_works()
    expect(counter("aggregated") > before, True)


def counter(name):
    for line in rack("switch_counters", JOB).splitlines():
        if line.split()[0] == name:
            return int(line.split()[1])
    return 0


TESTS = (
    a_killed_worker_is_named_and_rejoins,
    a_dead_host_is_named_by_all,
    a_worker_that_stops_for_a_moment_is_waited_for,
    a_stopped_worker_is_waited_for,
    a_dead_ps_ends_all,
    a_removed_job_ends_all,
    a_ps_that_has_forgotten_ends_all,
    pending_calls_end_when_a_worker_leaves,
    pending_calls_end_when_a_host_dies,
    pending_calls_end_when_the_ps_dies,
    pending_calls_end_when_the_job_is_removed,
    a_join_that_waits_ends_too,
    no_aggregator_stays_taken,
    the_module_comes_back,
)


def a_worker_that_stops_for_a_minute_is_waited_for():
    a_stopped_worker_is_waited_for(60000)


def main():
    tests = TESTS
    if sys.argv[1:] == ["minute"]:
        tests = (a_worker_that_stops_for_a_minute_is_waited_for,)
    subprocess.run(["modprobe", "atp"], check=True)
    rack("up", WORKERS, 1500)
    rack("netem", "all", "out", *DELAY)
    rack("switch_on")
    try:
        return run(tests)
    finally:
        rack("down")


if __name__ == "__main__":
    sys.exit(main())
