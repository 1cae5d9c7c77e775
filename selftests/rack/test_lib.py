#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""libatp and the Python module over it, with NumPy as the oracle."""

import errno
import os
import resource
import select
import subprocess
import sys
import threading

import numpy as np

from ranks import (JOB, LONG, TOP, WORKERS, Run, atp, expect, gradients,
                   inside, main, reduce, same, total)

NOBODY = 65534


def tensors_of_any_length():
    rng = np.random.default_rng(1)
    with Run() as jobs:
        for count in (1, 2, 61, 62, 63, 1000, 65535, 65536, 65537, 200000):
            reduce(jobs, gradients(rng, count))


def tensors_of_any_shape():
    rng = np.random.default_rng(2)
    with Run() as jobs:
        reduce(jobs, gradients(rng, (3, 5, 7)))
        # not contiguous: copied, and copied back
        reduce(jobs, [a.T for a in gradients(rng, (30, 20))])
        reduce(jobs, [a[::2] for a in gradients(rng, 1001)])
        reduce(jobs, gradients(rng, ()))
        reduce(jobs, gradients(rng, 0), gradients(rng, 10), gradients(rng, 0))


def integers():
    rng = np.random.default_rng(3)
    with Run() as jobs:
        arrays = [
            rng.integers(-(2**29), 2**29, 100000).astype(np.int32)
            for _ in range(WORKERS)
        ]
        reduce(jobs, arrays, gradients(rng, 100), [a.copy() for a in arrays])


def more_than_the_socket_holds():
    rng = np.random.default_rng(4)
    with Run() as jobs:
        # 12 MB in flight at once, three times what a socket holds
        reduce(jobs, *[gradients(rng, 1000000) for _ in range(3)])


def many_at_once():
    rng = np.random.default_rng(5)
    with Run() as jobs:
        reduce(jobs, *[gradients(rng, 1 + n % 7) for n in range(300)])


def more_than_may_be_locked():
    """The first chunk stays in place, others are copied."""
    rng = np.random.default_rng(7)
    soft, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    with Run() as jobs:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (300 * 1024, hard))
        # not CAP_IPC_LOCK, which knows no limit
        os.seteuid(NOBODY)
        try:
            reduce(jobs, *[gradients(rng, 500000) for _ in range(2)])
        finally:
            os.seteuid(0)
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (soft, hard))


def in_a_child(work):
    pid = os.fork()
    if not pid:
        try:
            work()
            os._exit(0)
        except BaseException as error:
            print(f"# in a child: {error}", flush=True)
        finally:
            os._exit(1)
    return pid


def ended_well(pid):
    expect(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)


def a_child_lets_go():
    """The run is its parent's."""
    rng = np.random.default_rng(8)
    with Run() as jobs:
        ones = np.ones(200000, np.float32)
        request = jobs[0].allreduce_start(ones)
        ended_well(in_a_child(jobs[0].close))
        others = [job.allreduce_start(ones.copy()) for job in jobs[1:]]
        for one in (request, *others):
            one.wait(LONG)
        same(ones, np.full(200000, WORKERS, np.float32))
        reduce(jobs, gradients(rng, 100000))


def a_child_takes_over():
    """What was pushed before is in its parent's memory, and its own is right."""
    rng = np.random.default_rng(9)
    arrays = gradients(rng, 200000)
    want = total(arrays)
    with Run() as jobs:
        request = jobs[0].allreduce_start(arrays[0])

        def goes_on():
            request.wait(LONG)
            same(arrays[0], want)

        child = in_a_child(goes_on)
        for other in [job.allreduce_start(array) for job, array in
                      zip(jobs[1:], arrays[1:])]:
            other.wait(LONG)
        ended_well(child)


def waiting_in_threads():
    rng = np.random.default_rng(6)
    arrays = gradients(rng, 300000)
    want = total(arrays)
    errors = []

    def work(job, array):
        try:
            for part in np.array_split(array, 5):
                job.allreduce(part)
        except OSError as error:
            errors.append(error)

    with Run() as jobs:
        threads = [
            threading.Thread(target=work, args=pair)
            for pair in zip(jobs, arrays)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    expect(errors, [])
    for array in arrays:
        same(array, want)


def the_descriptor_tells_what_is_done():
    with Run() as jobs:
        poll = select.poll()
        poll.register(jobs[0].fileno(), select.POLLIN)
        # nothing to do: not readable
        expect(poll.poll(0), [])
        arrays = [np.full(4, 1 + rank, np.int32) for rank in range(WORKERS)]
        first = jobs[0].allreduce_start(arrays[0])
        expect(poll.poll(0), [])
        others = [
            jobs[rank].allreduce_start(arrays[rank])
            for rank in range(1, WORKERS)
        ]
        expect(len(poll.poll(LONG * 1000)), 1)
        # done, as progress() found, but nobody has asked for it yet
        while jobs[0].progress():
            poll.poll(LONG * 1000)
        expect(len(poll.poll(0)), 1)
        expect(first.done(), True)
        expect(poll.poll(0), [])
        # an empty one is done at once
        poll = select.poll()
        poll.register(jobs[1].fileno(), select.POLLIN)
        for other in others:
            other.wait(LONG)
        expect(poll.poll(0), [])
        empty = jobs[1].allreduce_start(np.zeros(0, np.int32))
        expect(len(poll.poll(0)), 1)
        expect(empty.done(), True)
        expect(poll.poll(0), [])
        for array in arrays:
            expect(array.tolist(), [6] * 4)


def a_wait_has_a_limit():
    with Run() as jobs:
        array = np.ones(1, np.int32)
        request = jobs[0].allreduce_start(array)
        try:
            request.wait(0.1)
            raise AssertionError("it did not end")
        except TimeoutError:
            pass
        others = [job.allreduce_start(np.ones(1, np.int32)) for job in jobs[1:]]
        expect(request.wait(LONG) is array, True)
        expect(array[0], WORKERS)
        for other in others:
            other.wait(LONG)


def a_sum_that_does_not_fit():
    with Run() as jobs:
        size = 200000
        arrays = [np.ones(size, np.int32) for _ in jobs]
        for array in arrays:
            array[5] = 2**30
        requests = [
            job.allreduce_start(array) for job, array in zip(jobs, arrays)
        ]
        for request in requests:
            try:
                request.wait(LONG)
                raise AssertionError("it fits")
            except atp.Error as error:
                expect(error.errno, errno.EOVERFLOW)
        # other chunks are sums, and the run goes on
        for array in arrays:
            expect(array[-1], WORKERS)
        reduce(jobs, [np.ones(9, np.int32) for _ in jobs])


def the_library_in_c():
    """The program of the manual page, in a process per rank."""
    processes = []
    for rank in range(WORKERS):
        with inside(f"w{rank}"):
            processes.append(
                subprocess.Popen(
                    [os.path.join(TOP, "build/selftests/rack/sum"),
                     str(JOB), str(rank)],
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
    for process in processes:
        output, _ = process.communicate(timeout=LONG)
        expect((process.returncode, output), (0, "6 60\n"))


TESTS = (
    tensors_of_any_length,
    tensors_of_any_shape,
    integers,
    more_than_the_socket_holds,
    many_at_once,
    more_than_may_be_locked,
    a_child_lets_go,
    a_child_takes_over,
    waiting_in_threads,
    the_descriptor_tells_what_is_done,
    a_wait_has_a_limit,
    a_sum_that_does_not_fit,
    the_library_in_c,
)


if __name__ == "__main__":
    sys.exit(main(TESTS))
