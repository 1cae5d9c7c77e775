# SPDX-License-Identifier: GPL-2.0
"""All ranks of a job in this process, with NumPy as the oracle: for the tests of
libatp and the Python module."""

import contextlib
import os
import select
import subprocess
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.join(HERE, "../..")
os.environ.setdefault("LIBATP", os.path.join(TOP, "build/lib/libatp.so.1"))
sys.path.insert(0, os.path.join(HERE, "../lib"))
sys.path.insert(0, os.path.join(TOP, "userspace/python"))
import atp  # noqa: E402
from rack import atp as tool  # noqa: E402
from rack import hole, inside, rack, run  # noqa: E402

WORKERS = 3
JOB = 7
# whose ranks hold memory
HOLDER = 9
SCALE = 10**8
TIMEOUT = 2
LONG = 60
MEM = "/proc/sys/net/atp/mem"


class Run:
    """Only what never waits can be used."""

    def __init__(self, job=JOB):
        self.job = job

    def __enter__(self):
        self.jobs = []
        for rank in range(WORKERS):
            with inside(f"w{rank}"):
                self.jobs.append(atp.Job(self.job, rank))
        for job in self.jobs:
            job._wait_joined(LONG)
        return self.jobs

    def __exit__(self, *_):
        for job in self.jobs:
            job.close()


def expect(got, want):
    if got != want:
        raise AssertionError(f"got {got}, expected {want}")


def same(got, want):
    if got.dtype != want.dtype or got.shape != want.shape:
        raise AssertionError(f"{got.dtype} {got.shape}")
    wrong = np.flatnonzero(got.view(np.uint32) != want.view(np.uint32))
    if len(wrong):
        raise AssertionError(f"{len(wrong)} of {got.size}, {wrong[:5]}")


def gradients(rng, shape):
    return [
        np.array(
            rng.standard_normal(shape) * 10.0 ** -rng.integers(0, 6),
            np.float32,
        )
        for _ in range(WORKERS)
    ]


def total(arrays):
    """What the protocol promises, in float64, which is exact enough.

    The product of a float32 and 10^8 has 43 bits; the quotient of a 31-bit
    number by 10^8 is never nearer to a tie of float32 than 2^-44 of it.
    """
    if arrays[0].dtype == np.int32:
        return sum(a.astype(np.int64) for a in arrays).astype(np.int32)
    scaled = [np.rint(a.astype(np.float64) * SCALE) for a in arrays]
    # adding zero makes an unsigned zero
    return ((sum(scaled) + 0.0) / SCALE).astype(np.float32)


def settle(requests):
    """All requests of all ranks, by their descriptors."""
    waiting = dict(requests)
    while waiting:
        poll = select.poll()
        for job in {job for job, _ in waiting}:
            poll.register(job.fileno(), select.POLLIN)
        if not poll.poll(LONG * 1000):
            raise AssertionError([j.describe() for j, _ in waiting])
        waiting = {
            (job, number): request
            for (job, number), request in waiting.items()
            if not request.done()
        }


def reduce(jobs, *tensors):
    """tensors: for each, an array per rank"""
    want = [total(arrays) for arrays in tensors]
    requests = {}
    for rank, job in enumerate(jobs):
        for number, arrays in enumerate(tensors):
            requests[job, number] = job.allreduce_start(arrays[rank])
    settle(requests)
    for arrays, sums in zip(tensors, want):
        for array in arrays:
            same(array, sums)


def failure(call, *args):
    """The atp.Error that it raises"""
    try:
        call(*args)
    except atp.Error as error:
        return error
    raise AssertionError(f"{call} {args} did not fail")


def refused(exception, call, *args):
    """It raises that."""
    try:
        call(*args)
    except exception as error:
        return error
    raise AssertionError(f"{call} {args} was not refused")


def _limit(pages):
    with open(MEM, "w", encoding="ascii") as file:
        file.write(pages)


@contextlib.contextmanager
def no_memory():
    """Sockets may have no more memory until the block ends, or what it gets is
    called.  They need a job HOLDER: what each CPU keeps back for them is not
    seen, so its ranks hold more than that."""
    with Run(HOLDER) as holders:
        for job in holders[:-1]:
            job.allreduce_start(np.ones(1000000, np.float32))
        with open(MEM, encoding="ascii") as file:
            before = file.read()
        _limit("1 1 1")
        try:
            yield lambda: _limit(before)
        finally:
            _limit(before)


def add_job(job, *words):
    rack("job_add", job, WORKERS, 4, "fragment", 1400, "timeout",
         TIMEOUT * 1000, *words)


def main(tests):
    subprocess.run(["modprobe", "atp"], check=True)
    rack("up", WORKERS, 1500)
    add_job(JOB)
    add_job(HOLDER)
    try:
        return run(tests)
    finally:
        rack("down")
