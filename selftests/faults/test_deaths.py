#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Workers and the PS are killed, stopped, cut off, forget, and come back.

What they leave behind is told by the errno of every pending call, the error
queue of every rank, the events and "atp job stall"; and nothing of it keeps the
next run from working, in the switch neither.

usage: test_deaths.py [WORD]...	those with such a word in their name
"""

import errno
import os
import signal
import subprocess
import sys
import threading

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(here, "../lib"), os.path.join(here, "../rack")]
from atptest import LIMIT, wait_for  # noqa: E402
from rack import TOP, atp, rack, run  # noqa: E402
from reports import (  # noqa: E402
    ErrorMessage, Monitor, error_message, stall_names, stalls, tell,
)
from test_sockets import (  # noqa: E402
    ATP_DTYPE, INT32, LEFT, PS_SILENT, REMOVED, SILENT, SOL_ATP, STATE_FAILED,
    Rank, expect,
)

JOB, PATIENT = 7, 8
WORKERS = 3
LAST = WORKERS - 1
TIMEOUT = 3000
# recvmsg(2), in /proc
RECVMSG = "47"


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

    def sleeps_in_pull(self):
        """Its first rank"""
        parent = self.process.pid
        with open(f"/proc/{parent}/task/{parent}/children",
                  encoding="ascii") as f:
            rank = f.read().split()[0]
        # of one that runs it says nothing but that
        with open(f"/proc/{rank}/syscall", encoding="ascii") as f:
            return f.read().split()[0] == RECVMSG

    def ended(self):
        """All of it has ended, as it should.  Returns what the error queues
        have said: dictionaries, by "sequence" and so on."""
        output, _ = self.process.communicate(timeout=LIMIT)
        lines = output.splitlines()
        if self.process.returncode or not output.startswith("right"):
            raise AssertionError(output)
        told = [line.split()[1:] for line in lines if line.startswith("told")]
        return [{name: int(value, 0)
                 for name, value in zip(words[::2], words[1::2])}
                for words in told]

    def kill(self):
        if self.process.poll() is None:
            self.signal(signal.SIGKILL)
            self.process.communicate()


def ps_job():
    return tell("ps", "job", "show", JOB)[0]


def going():
    """The run has come some way."""
    start = wait_for(lambda: ps_job()["running"] and ps_job(), "run")
    wait_for(lambda: ps_job()["frontier"] > start["frontier"] + 50,
             "progress")


# One fragment each, a hundred for each round trip of 20 ms: more than there is
# time for, on any machine
ENDLESS = ("--chunks", 30000, "--lanes", 62, "--depth", 100)
DELAY = ("delay", "10ms")


def a_run_works():
    workers = Workers(0, LAST, "--chunks", 6, "--lanes", 4096)
    try:
        workers.ended()
    finally:
        workers.kill()


def taken():
    return tell("switch", "switch", "show")["occupied"]


def all_is_well():
    """Runs work, and what a dead one has left in the switch is free."""
    left = taken()
    print(f"# {left} aggregators taken")
    expect(left > 0, True)

    def all_free():
        a_run_works()
        return not taken()

    wait_for(all_free, "free aggregators")


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


def failed(monitor, told, reason, ranks):
    """The event of w0 and the error queue of its rank say the same."""
    event = monitor.event("failed", reason)
    expect((event["rank"], event["ranks"], event["fragment"]),
           (0, ranks, told[0]["sequence"]))


def a_killed_worker_is_named_and_rejoins():
    job()
    with Monitor("ps", JOB) as at_ps, Monitor("w0", JOB) as at_worker:
        for _ in range(2):
            with Death(errno.ECONNRESET, 1 << LAST) as death:
                death.last.kill()
                told = death.others.ended()
            expect(at_ps.event("ended", "left")["ranks"], [LAST])
            failed(at_worker, told, "left", [LAST])
            all_is_well()


def a_dead_host_is_named_by_all():
    # a machine that is slow finds time to ask before it is over
    job(10 * TIMEOUT)
    with Monitor("ps", JOB) as at_ps, Monitor("w0", JOB) as at_worker:
        try:
            with Death(errno.ETIMEDOUT, 1 << LAST,
                       own=(errno.EHOSTDOWN, 0)) as death:
                rack("link", f"w{LAST}", "down")
                event = at_ps.event("stalled")
                expect(event["ranks"], [LAST])
                stuck = event["fragment"]
                expect(stall_names(JOB, [LAST], ("w0", "w1")), stuck)
                told = death.others.ended()
                death.last.ended()
            for one in told:
                expect((one["sequence"], one["missing"]), (stuck, 1 << LAST))
            event = at_ps.event("ended", "silent")
            expect((event["ranks"], event["fragment"]), ([LAST], stuck))
            failed(at_worker, told, "silent", [LAST])
        finally:
            rack("link", f"w{LAST}", "up")
        all_is_well()


def a_stopped_worker_is_waited_for(length):
    """Its host answers for it: no timeout of the job ends the run."""
    job()
    workers = [Workers(0, LAST - 1, "--chunks", 600, "--lanes", 620),
               Workers(LAST, LAST, "--chunks", 600, "--lanes", 620)]
    try:
        going()
        workers[1].signal(signal.SIGSTOP)
        stuck = stall_names(JOB, [LAST])
        # This is how long it stands still, not how long anything takes.
        wait_for(lambda: stalls("ps", JOB)[0].get("stall_ms", 0) > length,
                 f"stall of {length} ms")
        expect(stall_names(JOB, [LAST]), stuck)
        workers[1].signal(signal.SIGCONT)
        for some in workers:
            some.ended()
    finally:
        for some in workers:
            some.kill()


def a_worker_that_stops_for_a_moment_is_waited_for():
    a_stopped_worker_is_waited_for(TIMEOUT // 4)


def a_worker_that_stops_for_a_minute_is_waited_for():
    a_stopped_worker_is_waited_for(60000)


def a_pull_that_is_stopped_goes_on(limit):
    """It waits for what the others will push when they go on, too.  Without a
    limit the kernel calls again, else the worker has to."""
    job()
    words = ("--chunks", 600, "--lanes", 620)
    others = Workers(0, LAST - 1, *words)
    last = Workers(LAST, LAST, *words, "--blocking", "--limit", limit)
    try:
        going()
        others.signal(signal.SIGSTOP)
        # long enough for it to have pulled all that there is
        wait_for(lambda: any(stall.get("stall_ms", 0) > TIMEOUT // 2
                             for stall in stalls("ps", JOB)), "stall")
        wait_for(last.sleeps_in_pull, "pull")
        last.signal(signal.SIGSTOP)
        was = stalls("ps", JOB)[0]["stall_ms"]
        wait_for(lambda: stalls("ps", JOB)[0]["stall_ms"] > was + TIMEOUT // 2,
                 "time to pass")
        last.signal(signal.SIGCONT)
        wait_for(last.sleeps_in_pull, "pull that goes on")
        others.signal(signal.SIGCONT)
        last.ended()
        others.ended()
    finally:
        last.kill()
        others.kill()


def a_pull_without_a_limit_goes_on_after_a_stop():
    a_pull_that_is_stopped_goes_on(0)


def a_pull_with_a_limit_is_repeated_after_a_stop():
    a_pull_that_is_stopped_goes_on(600)


def a_worker_that_stops_for_longer_than_patience_is_named():
    job()
    with Monitor("ps", JOB) as at_ps, Monitor("w0", JOB) as at_worker:
        with Death(errno.ETIME, 1 << LAST,
                   own=(errno.ETIME, 1 << LAST)) as death:
            death.last.signal(signal.SIGSTOP)
            stuck = stall_names(JOB, [LAST], ("w0", "w1"))
            expect(atp("ps", "job", "set", JOB, "patience", "1s"), (0, ""))
            told = death.others.ended()
            for one in told:
                expect((one["sequence"], one["missing"]), (stuck, 1 << LAST))
            event = at_ps.event("ended", "late")
            expect((event["ranks"], event["fragment"]), ([LAST], stuck))
            failed(at_worker, told, "late", [LAST])
            # it is told as well, when it can listen
            death.last.signal(signal.SIGCONT)
            death.last.ended()
        expect(atp("ps", "job", "set", JOB, "patience", "10min"), (0, ""))
        all_is_well()


def waits_for_the_ps(host):
    """If so, since which fragment; no rank is to blame."""
    for stall in stalls(host, JOB):
        if stall["waiting_ps"] and stall["silent_ms"]:
            expect(stall["waiting"], [])
            return (stall["fragment"],)
    return None


def a_dead_ps_ends_all():
    # a machine that is slow finds time to ask in the second half of it
    job(4 * TIMEOUT)
    with Monitor("w0", JOB) as at_worker:
        try:
            with Death(errno.EHOSTDOWN, 0, own=(errno.EHOSTDOWN, 0)) as death:
                expect(waits_for_the_ps("w0"), None)
                rack("link", "ps", "down")
                stuck = [wait_for(lambda h=host: waits_for_the_ps(h), "silence")
                         for host in ("w0", "w1", f"w{LAST}")]
                told = death.others.ended()
                death.last.ended()
            # each has the oldest fragment that it was not told of
            expect(sorted(one["sequence"] for one in told),
                   sorted(fragment for fragment, in stuck[:LAST]))
            failed(at_worker, told, "ps-silent", [])
        finally:
            rack("link", "ps", "up")
        all_is_well()


def ps_job_words(timeout=TIMEOUT):
    words = ["ps", "10.0.0.254"]
    for rank in range(WORKERS):
        words += ["worker", f"10.0.0.{rank + 1}"]
    return [*words, "fragment", 248, "timeout", timeout]


def a_removed_job_ends_all():
    job()
    with Monitor("w0", JOB) as at_worker:
        with Death(errno.EIDRM, 0, own=(errno.EIDRM, 0)) as death:
            expect(atp("ps", "job", "del", JOB), (0, ""))
            told = death.others.ended()
            death.last.ended()
        failed(at_worker, told, "removed", [])
    expect(atp("ps", "job", "add", JOB, *ps_job_words()), (0, ""))
    all_is_well()


def a_ps_that_has_forgotten_ends_all():
    """As if its host had crashed and come back: nobody was told.  It does so
    within the timeout, which is longer than "atp" takes on any machine."""
    job(10 * TIMEOUT)
    with Monitor("w0", JOB) as at_worker:
        with Death(errno.ESTALE, 0, own=(errno.ESTALE, 0)) as death:
            rack("netem", "ps", "out", "loss", "100%")
            try:
                expect(atp("ps", "job", "del", JOB), (0, ""))
                expect(atp("ps", "job", "add", JOB,
                           *ps_job_words(10 * TIMEOUT)), (0, ""))
            finally:
                rack("netem", "ps", "out", *DELAY)
            told = death.others.ended()
            death.last.ended()
        failed(at_worker, told, "epoch", [])
        all_is_well()


def what_the_dead_left_is_in_nobody_s_way():
    """In as many aggregators as there are by default, which later runs may never
    meet; with the job it goes."""
    job()
    rack("switch_resize")
    try:
        with Death(errno.ECONNRESET, 1 << LAST) as death:
            death.last.kill()
            death.others.ended()
        left = taken()
        print(f"# {left} aggregators taken")
        expect(left > 0, True)
        before = counter("aggregated")
        a_run_works()
        expect(counter("aggregated") > before, True)
        rack("job_del", JOB)
        expect(taken(), 0)
    finally:
        rack("switch_resize", "aggregators", 16, "timeout", 500)


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


def every_pending_call_ends(cause, remedy, error, reason, ranks):
    """On every rank but one that is no more."""
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
        expect(stall_names(JOB, [LAST], ("w0", "w1")), 0)
        cause(socks)
        for calls in pending:
            expect(calls.ended(), {"recv": error, "send": error})
            expect(calls.rank.info(), (STATE_FAILED, reason, ranks))
            expect(error_message(calls.sock),
                   ErrorMessage(error, JOB, calls.rank.rank, reason, ranks, 0,
                                1 << LAST))
            expect(error_message(calls.sock), None)
        if not ranks:
            # the last is not to blame: it is told as the others are
            wait_for(lambda: socks[-1].info()[0] == STATE_FAILED, "failure")
            expect(error_message(socks[-1].sock),
                   ErrorMessage(error, JOB, LAST, reason, 0, 0, 0))
    finally:
        remedy()
        for rank in socks:
            rank.close()
    all_is_well()


def within_the_timeout(host, error, reason, ranks):
    """By a clock that is as slow as the machine: a job with twice the timeout,
    which is cut off at the same moment, still waits when all has ended."""
    timeout = 4 * TIMEOUT
    job(timeout)
    rack("job_add", PATIENT, WORKERS, 4, "fragment", 248, "timeout",
         2 * timeout)
    runs = {}
    try:
        pending = {}
        for number in JOB, PATIENT:
            runs[number] = [Rank(rank, number) for rank in range(WORKERS)]
            for rank in runs[number]:
                rank.begin()
            for rank in runs[number]:
                rank.joined()
                rank.sock.setsockopt(SOL_ATP, ATP_DTYPE, INT32)
            pending[number] = [Pending(rank) for rank in runs[number][:-1]]
        for calls in pending[JOB] + pending[PATIENT]:
            wait_for(calls.sleeps, "full socket")
        rack("link", host, "down")
        for calls in pending[JOB]:
            expect(calls.ended(), {"recv": error, "send": error})
            expect(calls.rank.info(), (STATE_FAILED, reason, ranks))
        expect([calls.sleeps() for calls in pending[PATIENT]], [True] * LAST)
    finally:
        # which ends its calls
        rack("job_del", PATIENT)
        rack("link", host, "up")
        for rank in sum(runs.values(), []):
            rank.close()
    a_run_works()


def a_dead_worker_ends_calls_within_the_timeout():
    within_the_timeout(f"w{LAST}", errno.ETIMEDOUT, SILENT, 1 << LAST)


def a_dead_ps_ends_calls_within_the_timeout():
    within_the_timeout("ps", errno.EHOSTDOWN, PS_SILENT, 0)


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
                            errno.EHOSTDOWN, PS_SILENT, 0)


def pending_calls_end_when_the_job_is_removed():
    every_pending_call_ends(
        lambda _: expect(atp("ps", "job", "del", JOB), (0, "")),
        lambda: expect(atp("ps", "job", "add", JOB, *ps_job_words()), (0, "")),
        errno.EIDRM, REMOVED, 0)


def a_pull_of_one_that_has_pushed_nothing_ends():
    """A worker is killed; others have nothing that could lack its part."""
    job()
    last = None
    with Monitor("w0", JOB) as at_worker:
        ranks = [Rank(rank) for rank in range(LAST)]
        try:
            for rank in ranks:
                rank.begin()
            last = Workers(LAST, LAST, *ENDLESS)
            for rank in ranks:
                rank.joined()
                rank.sock.setblocking(True)
            last.kill()
            # the run goes on: they may have all that they want
            for rank in ranks:
                try:
                    expect(rank.sock.recv(4), "an error")
                except OSError as error:
                    expect(error.errno, errno.ECONNRESET)
            ranks[0].sock.send(bytes(4))
            for rank in ranks:
                wait_for(lambda: rank.info() ==  # noqa: B023
                         (STATE_FAILED, LEFT, 1 << LAST), "failure")
            told = error_message(ranks[0].sock)
            expect(told, ErrorMessage(errno.ECONNRESET, JOB, 0, LEFT,
                                      1 << LAST, 0, 0))
            event = at_worker.event("failed", "left")
            expect((event["rank"], event["ranks"], event["fragment"]),
                   (0, [LAST], 0))
        finally:
            if last:
                last.kill()
            for rank in ranks:
                rank.close()
    a_run_works()


def a_join_that_waits_for_a_dead_host_ends():
    """It had joined, the run had not begun; another rank never came."""
    job()
    ranks = [Rank(0), Rank(LAST)]
    waits, dead = ranks
    try:
        for rank in ranks:
            rank.begin()
        for rank in 0, LAST:
            wait_for(lambda: ps_job()["workers"][rank]["joined"],  # noqa: B023
                     "JOIN")
        with Monitor("w0", JOB) as at_worker:
            rack("link", f"w{LAST}", "down")
            waits.sock.setblocking(True)
            try:
                waits.join()
                raise AssertionError("joined")
            except OSError as error:
                expect(error.errno, errno.ETIMEDOUT)
            event = at_worker.event("failed", "silent")
            expect(event["ranks"], [LAST])
        expect(waits.info(), (STATE_FAILED, SILENT, 1 << LAST))
        expect(error_message(waits.sock),
               ErrorMessage(errno.ETIMEDOUT, JOB, 0, SILENT, 1 << LAST, 0, 0))
        wait_for(lambda: dead.info()[0] == STATE_FAILED, "failure")
        expect(dead.info(), (STATE_FAILED, PS_SILENT, 0))
    finally:
        rack("link", f"w{LAST}", "up")
        for rank in ranks:
            rank.close()
    a_run_works()


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
            expect(error.errno, errno.EHOSTDOWN)
        expect(rank.info(), (STATE_FAILED, PS_SILENT, 0))
        expect(error_message(rank.sock),
               ErrorMessage(errno.EHOSTDOWN, JOB, 0, PS_SILENT, 0, 0, 0))
        rank.close()
    finally:
        rack("link", "ps", "up")
    a_run_works()


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
    a_worker_that_stops_for_a_minute_is_waited_for,
    a_pull_without_a_limit_goes_on_after_a_stop,
    a_pull_with_a_limit_is_repeated_after_a_stop,
    a_worker_that_stops_for_longer_than_patience_is_named,
    a_dead_ps_ends_all,
    a_removed_job_ends_all,
    a_ps_that_has_forgotten_ends_all,
    what_the_dead_left_is_in_nobody_s_way,
    a_dead_worker_ends_calls_within_the_timeout,
    a_dead_ps_ends_calls_within_the_timeout,
    pending_calls_end_when_a_worker_leaves,
    pending_calls_end_when_a_host_dies,
    pending_calls_end_when_the_ps_dies,
    pending_calls_end_when_the_job_is_removed,
    a_pull_of_one_that_has_pushed_nothing_ends,
    a_join_that_waits_ends_too,
    a_join_that_waits_for_a_dead_host_ends,
    the_module_comes_back,
)


def main():
    subprocess.run(["modprobe", "atp"], check=True)
    rack("up", WORKERS, 1500)
    rack("netem", "all", "out", *DELAY)
    # so few that the next run meets what is left in any of them
    rack("switch_on", "aggregators", 16, "timeout", 500)
    try:
        return run(TESTS)
    finally:
        rack("down")


if __name__ == "__main__":
    sys.exit(main())
