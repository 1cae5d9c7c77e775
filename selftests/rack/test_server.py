#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""An application on the PS host makes the results: every rank gets its bits,
whatever the network does; and how it comes and goes, by libatp and Python."""

import contextlib
import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback

import numpy as np

from ranks import (HOLDER, JOB, LONG, WORKERS, add_job, atp, expect, inside,
                   no_memory, rack, run, total)
from rack import atp as tool

LANES = 350
NOBODY = 65534


def until(what, condition):
    deadline = time.monotonic() + LONG
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"never: {what}")
        time.sleep(0.01)


def make(values):
    """What the application makes of sums: any bits"""
    bits = values.view(np.uint32)
    return ((bits ^ (bits >> np.uint32(7))) * np.uint32(0x9E3779B1)).view(
        values.dtype
    )


class Application(threading.Thread):
    """Answers until the run ends; knows how many values came."""

    def __init__(self, server):
        super().__init__()
        self.server = server
        self.count = 0
        self.failure = None

    def run(self):
        try:
            for sums in self.server:
                expect(sums.first, self.count)
                self.count += len(sums.values)
                self.server.push(make(sums.values))
        except Exception as failure:
            self.failure = failure


@contextlib.contextmanager
def joined():
    """The ranks and the application, all in this process"""
    members = []
    for rank in range(WORKERS):
        with inside(f"w{rank}"):
            members.append(atp.Job(JOB, rank))
    with inside("ps"):
        members.append(atp.Server(JOB))
    for member in members:
        member._wait_joined(LONG)
    try:
        yield members[:-1], members[-1]
    finally:
        for member in members:
            member.close()


def exchange(lengths):
    """Tensors through all ranks, compared bit for bit"""
    rng = np.random.default_rng(len(lengths))
    tensors, results = [], []
    for number, length in enumerate(lengths):
        if number % 3:
            arrays = [
                np.array(rng.standard_normal(length) / 10, np.float32)
                for _ in range(WORKERS)
            ]
        else:
            arrays = [
                rng.integers(-(2**28), 2**28, length).astype(np.int32)
                for _ in range(WORKERS)
            ]
        tensors.append(arrays)
        results.append(make(total(arrays)))
    with joined() as (jobs, server):
        application = Application(server)
        application.start()
        requests = [
            (job, job.allreduce_start(arrays[rank]))
            for arrays in tensors
            for rank, job in enumerate(jobs)
        ]
        deadline = time.monotonic() + LONG
        while not all([request.done() for _, request in requests]):
            if application.failure or time.monotonic() > deadline:
                raise AssertionError([job.describe() for job in jobs])
            for job in jobs:
                job.progress()
            time.sleep(0.001)
        for job in jobs:
            job.close()
        application.join(LONG)
        if application.failure:
            raise application.failure
        expect(application.is_alive(), False)
        expect(application.count, sum(lengths))
    for arrays, result in zip(tensors, results):
        for array in arrays:
            wrong = np.flatnonzero(
                array.view(np.uint32) != result.view(np.uint32)
            )
            if len(wrong):
                raise AssertionError(f"{len(wrong)} wrong, {wrong[:5]}")


def every_rank_gets_its_bits():
    exchange((1, 2, 349, 350, 351, 1000, 65537, 100000))


def switched():
    """What the switch has counted"""
    status, output = tool("switch", "-json", "switch", "show", "job", JOB)
    expect((status, output if status else ""), (0, ""))
    shown = json.loads(output)
    return (shown["jobs"][0] if "jobs" in shown else shown)["counters"]


def through_a_switch():
    """A result leaves the PS once, and the switch makes a copy for each rank."""
    lengths = (1, 350, 1000, 40000, 40000)
    rack("switch_on")
    try:
        was = switched()
        exchange(lengths)
        is_now = switched()
    finally:
        rack("switch_off")
    grown = {name: is_now[name] - was[name]
             for name in ("parameters", "multicast", "copies")}
    fragments = sum(-(-length // LANES) for length in lengths)
    expect(grown["multicast"] >= fragments, True)
    expect(grown["copies"], WORKERS * grown["multicast"])


def through_losses_and_copies():
    rack("netem", "all", "both", "loss", "3%", "duplicate", "2%", "delay",
         "1ms", "1ms")
    try:
        exchange((1, 3000, 3000, 10000))
        rack("switch_on")
        exchange((1, 3000, 3000, 10000))
    finally:
        rack("switch_off")
        rack("netem", "all", "both")


def failure(call):
    try:
        call()
    except atp.Error as error:
        return error
    raise AssertionError("it did not fail")


def it_dies():
    """In a process of its own, by SIGKILL"""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            with inside("ps"):
                server = atp.Server(JOB)
            server._wait_joined(LONG)
            server.pull(LONG)
            os.write(write, b"!")
            signal.pause()
        except BaseException:
            traceback.print_exc()
        os._exit(1)
    os.close(write)
    jobs = []
    for rank in range(WORKERS):
        with inside(f"w{rank}"):
            jobs.append(atp.Job(JOB, rank))
    for job in jobs:
        job._wait_joined(LONG)
    requests = [job.allreduce_start(np.ones(10, np.float32)) for job in jobs]
    expect(os.read(read, 1), b"!")
    os.close(read)
    until("a worker knows", lambda: jobs[0].info().server)
    for host, rank in (("ps", None), ("w0", 0)):
        status, text = tool(host, "job", "stall")
        if status or "waits for the server" not in text:
            raise AssertionError(f"{host} {rank}: {text}")
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    for job, request in zip(jobs, requests):
        error = failure(lambda: request.wait(LONG))
        expect(error.errno, errno.EOWNERDEAD)
        expect((error.reason, error.ranks), (atp.Reason.SERVER, ()))
        expect(error.strerror, f"job {JOB}: the application at the PS has left")
        job.close()
    every_rank_gets_its_bits()


def another_one_is_refused():
    with joined():
        with inside("ps"):
            error = failure(lambda: atp.Server(JOB))
        expect(error.errno, errno.EADDRINUSE)
        with inside("w0"):
            error = failure(lambda: atp.Server(JOB))
        expect(error.errno, errno.EADDRNOTAVAIL)
        expect(error.strerror, f"job {JOB}: this host is not the PS")


def as_nobody():
    """Return: errno of joining"""
    child = os.fork()
    if not child:
        with inside("ps"):
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            try:
                atp.Server(JOB).close()
                os._exit(0)
            except atp.Error as error:
                os._exit(error.errno)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def who_may_be_it():
    expect(as_nobody(), errno.EACCES)
    expect(tool("ps", "job", "set", JOB, "uid", NOBODY)[0], 0)
    expect(as_nobody(), 0)
    expect(tool("ps", "job", "set", JOB, "uid", "none")[0], 0)


def results_of_another_length():
    with joined() as (jobs, server):
        for job in jobs:
            job.allreduce_start(np.ones(10, np.float32))
        sums = server.pull(LONG)
        for wrong in (9, 11):
            try:
                server.push(np.ones(wrong, np.float32))
                raise AssertionError("it was taken")
            except ValueError:
                pass
        server.push(make(sums.values))
        try:
            server.pull(0.01)
            raise AssertionError("there is nothing")
        except TimeoutError:
            pass


def results_of_another_type():
    with joined() as (jobs, server):
        for dtype in (np.float32, np.int32):
            for job in jobs:
                job.allreduce_start(np.ones(10, dtype))
        sums = [server.pull(LONG) for _ in range(2)]
        for wrong in (np.ones(10, np.int32), np.ones(20, np.float32)):
            try:
                server.push(wrong)
                raise AssertionError("it was taken")
            except TypeError:
                pass
        for part in sums:
            server.push(make(part.values))


def memory_is_short_for_a_moment():
    # what workers send at once; more pages than a socket has in reserve
    count = 10 * LANES
    arrays = [np.full(count, rank, np.float32) for rank in range(WORKERS)]
    result = make(total(arrays))
    with joined() as (jobs, server):
        requests = [
            job.allreduce_start(array) for job, array in zip(jobs, arrays)
        ]
        until("all is added", lambda:
              server.info().end - server.info().una == count // LANES)
        with no_memory():
            try:
                server.pull(0)
                raise AssertionError("there is no memory")
            except TimeoutError:
                pass
        sums = server.pull(LONG)
        expect(len(sums.values), count)
        with no_memory() as end:
            timer = threading.Timer(0.3, end)
            timer.start()
            server.push(make(sums.values))
            timer.join()
        for request, array in zip(requests, arrays):
            request.wait(LONG)
            expect(array.tobytes(), result.tobytes())


def a_host_that_does_not_know():
    """One of them was told of the job without "server"."""
    _, text = tool("w1", "-json", "job", "show", JOB)
    expect('"server":true' in text, True)
    rack("job_del", JOB)
    rack("job_add", JOB, WORKERS, 4, "fragment", 1400)
    rack("job_add", JOB + 1, WORKERS, 4, "fragment", 1400, "server")
    expect(tool("ps", "job", "del", JOB)[0], 0)
    members = " worker ".join(f"10.0.0.{i + 1}" for i in range(WORKERS))
    expect(tool("ps", "job", "add", JOB, "ps", "10.0.0.254",
                *f"worker {members} server".split())[0], 0)
    with inside("w1"):
        error = failure(lambda: atp.join(JOB, 1, LONG))
    expect(error.errno, errno.EPROTO)
    expect(error.reason, atp.Reason.MISMATCH)


def its_namespace_goes_and_the_module():
    with inside("ps"):
        server = atp.Server(JOB + 1)
    rack("down")
    server.close()
    until("the module can go",
          lambda: not subprocess.run(["rmmod", "atp"], check=False,
                                     stderr=subprocess.DEVNULL).returncode)
    subprocess.run(["modprobe", "atp"], check=True)


TESTS = (
    every_rank_gets_its_bits,
    through_a_switch,
    through_losses_and_copies,
    it_dies,
    another_one_is_refused,
    who_may_be_it,
    results_of_another_length,
    results_of_another_type,
    memory_is_short_for_a_moment,
    a_host_that_does_not_know,
    its_namespace_goes_and_the_module,
)


def main():
    subprocess.run(["modprobe", "atp"], check=True)
    rack("up", WORKERS, 1500)
    rack("job_add", JOB, WORKERS, 4, "fragment", 4 * LANES, "server")
    add_job(HOLDER)
    try:
        return run(TESTS)
    finally:
        rack("down")


if __name__ == "__main__":
    sys.exit(main())
