#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""libatp and the Python module when things go wrong: runs that end, memory that is
short, signals, wrong arguments."""

import contextlib
import ctypes
import errno
import select
import subprocess
import sys

import numpy as np

from ranks import (JOB, LONG, WORKERS, Run, add_job, atp, expect, failure,
                   gradients, hole, inside, main, no_memory, rack, refused,
                   same, settle, tool, total)

# nobody is taken for silent in it
PATIENT = 8
PATIENT_WORDS = ["ps", "10.0.0.254", "worker", "10.0.0.1", "worker", "10.0.0.2",
                 "worker", "10.0.0.3", "fragment", 1400, "timeout", "60s"]


def a_silent_rank_is_named():
    with Run() as jobs:
        requests = [
            job.allreduce_start(np.ones(1000, np.float32)) for job in jobs[:2]
        ]
        rack("link", "w2", "down")
        try:
            for request in requests:
                error = failure(request.wait, LONG)
                expect(error.errno, errno.ETIMEDOUT)
                expect(error.reason, atp.Reason.SILENT)
                expect(error.ranks, (2,))
                expect(error.strerror, f"job {JOB}: rank 2 is silent")
            # and once more
            error = failure(jobs[0].allreduce_start, np.ones(1, np.float32))
            expect(error.errno, errno.ETIMEDOUT)
        finally:
            rack("link", "w2", "up")


def a_silent_ps_is_told_from_a_silent_rank():
    with Run() as jobs:
        request = jobs[0].allreduce_start(np.ones(1000, np.float32))
        rack("link", "ps", "down")
        try:
            error = failure(request.wait, LONG)
            expect(error.errno, errno.EHOSTDOWN)
            expect(error.reason, atp.Reason.PS_SILENT)
            expect(error.ranks, ())
            expect(error.strerror,
                   f"job {JOB}: the PS is silent, or this host is cut off")
        finally:
            rack("link", "ps", "up")


def a_path_that_loses_data_is_told_from_silence():
    with Run() as jobs:
        # so that its timer is short
        for _ in range(20):
            settle({(job, 0): job.allreduce_start(np.ones(1000, np.float32))
                    for job in jobs})
        with hole("w2"):
            requests = [job.allreduce_start(np.ones(1000, np.float32))
                        for job in jobs]
            error = failure(requests[2].wait, 2 * LONG)
        expect(error.errno, errno.ECOMM)
        expect(error.reason, atp.Reason.UNANSWERED)
        expect(error.ranks, (2,))
        expect(error.strerror, f"job {JOB}: the PS lives, but answers no "
               "fragment: path MTU?")


def ranks_that_left_are_named():
    with Run() as jobs:
        jobs[0].close()
        jobs[2].close()
        request = jobs[1].allreduce_start(np.ones(1, np.float32))
        error = failure(request.wait, LONG)
        expect(error.errno, errno.ECONNRESET)
        expect(error.reason, atp.Reason.LEFT)
        expect(error.ranks, (0, 2))
        expect(error.strerror, f"job {JOB}: ranks 0,2 have left")


@contextlib.contextmanager
def patient():
    rack("job_add", PATIENT, WORKERS, 4, "fragment", 1400, "timeout", 60000)
    try:
        yield
    finally:
        rack("job_del", PATIENT)


def says(error, number, reason, ranks, words):
    expect((error.errno, error.reason, error.ranks, error.strerror),
           (number, reason, ranks, f"job {PATIENT}: {words}"))


def in_words(number, reason, ranks, words, cause):
    """What ranks 0 and 1 are told when they wait for the last one, and @cause
    does something with all of them."""
    with patient(), Run(PATIENT) as jobs:
        requests = [job.allreduce_start(np.ones(1000, np.float32))
                    for job in jobs[:2]]
        cause(jobs)
        for request in requests:
            says(failure(request.wait, LONG), number, reason, ranks, words)


def ranks_that_disagree_are_named():
    in_words(errno.EPROTO, atp.Reason.DISAGREE, (2,),
             "rank 2 pushes other lengths or types",
             lambda jobs: jobs[2].allreduce_start(np.ones(999, np.float32)))


def rank_2_forgets(*words):
    """Its job goes and comes back; nobody is told."""
    rack("link", "w2", "down")
    expect(tool("w2", "job", "del", PATIENT), (0, ""))
    rack("link", "w2", "up")
    expect(tool("w2", "job", "add", PATIENT, *PATIENT_WORDS, *words), (0, ""))


def a_rank_that_started_again_is_named():
    def cause(_):
        rank_2_forgets()
        with inside("w2"):
            again.append(atp.Job(PATIENT, 2))

    again = []
    in_words(errno.ECONNRESET, atp.Reason.REJOIN, (2,),
             "rank 2 has started again", cause)
    again[0].close()


def a_ps_that_has_forgotten_says_so():
    def cause(_):
        rack("link", "ps", "down")
        expect(tool("ps", "job", "del", PATIENT), (0, ""))
        expect(tool("ps", "job", "add", PATIENT, *PATIENT_WORDS), (0, ""))
        rack("link", "ps", "up")

    in_words(errno.ESTALE, atp.Reason.EPOCH, (),
             "the PS does not know this run, it was restarted", cause)


def a_rank_that_is_late_is_named():
    in_words(errno.ETIME, atp.Reason.LATE, (2,),
             "rank 2 kept the others waiting for too long",
             lambda _: expect(tool("ps", "job", "set", PATIENT, "patience",
                                   "1s"), (0, "")))


def a_path_that_takes_less_is_named():
    def cause(jobs):
        subprocess.run("ip -n atp-w2 link set eth0 mtu 1300".split(),
                       check=True)
        request = jobs[2].allreduce_start(np.ones(1000, np.float32))
        says(failure(request.wait, LONG), errno.EMSGSIZE, atp.Reason.MTU, (2,),
             "rank 2 has an MTU on its path that is too small")

    try:
        # the others cannot know more
        in_words(errno.ECONNRESET, atp.Reason.LEFT, (2,), "rank 2 has left",
                 cause)
    finally:
        subprocess.run("ip -n atp-w2 link set eth0 mtu 1500".split(),
                       check=True)


def a_rank_that_is_configured_differently_is_named():
    with patient():
        rank_2_forgets("scale", 1000)
        jobs = []
        for rank in range(WORKERS):
            with inside(f"w{rank}"):
                jobs.append(atp.Job(PATIENT, rank))
            # the first two wait for it
            while rank < 2 and rank not in jobs[0].info().ranks:
                pass
        for job in jobs:
            says(failure(job._wait_joined, LONG), errno.EPROTO,
                 atp.Reason.MISMATCH, (2,),
                 "rank 2 has the job configured differently than the PS")
            job.close()


def joining_fails_in_words():
    for host, job, rank, number, words in (
        ("w0", 99, 0, errno.ENOENT, "no such job on this host"),
        ("w0", JOB, 9, errno.EINVAL, "there is no rank 9"),
        ("w0", JOB, 70000, errno.EINVAL, "there is no rank 70000"),
        ("w0", JOB, 1, errno.EADDRNOTAVAIL,
         "the address of rank 1 is not on this host"),
    ):
        try:
            with inside(host):
                atp.join(job, rank)
            raise AssertionError("it joined")
        except atp.Error as error:
            expect(error.errno, number)
            expect(error.strerror, f"job {job}: {words}")
    try:
        with inside("w0"):
            atp.join(JOB, 0, timeout=0.1)
        raise AssertionError("it joined alone")
    except TimeoutError as error:
        expect(
            error.strerror, f"job {JOB}: rank 0 waits for the others to join"
        )


def arguments_are_checked():
    with Run() as jobs:
        read_only = np.ones(3, np.float32)
        read_only.flags.writeable = False
        for wrong, exception in (
            (np.ones(3), TypeError),
            ([1.0, 2.0], TypeError),
            (np.ones(3, ">f4"), TypeError),
            (read_only, ValueError),
        ):
            try:
                jobs[0].allreduce(wrong)
                raise AssertionError(f"{wrong!r} was taken")
            except exception:
                pass
        info = jobs[1].info()
        expect((info.job, info.rank, info.workers), (JOB, 1, WORKERS))
        expect(info.reason, atp.Reason.NONE)
        jobs[2].close()
        jobs[2].close()
        try:
            jobs[2].allreduce(np.ones(1, np.float32))
            raise AssertionError("it has left")
        except ValueError:
            pass


def readable(job):
    poll = select.poll()
    poll.register(job.fileno(), select.POLLIN)
    return bool(poll.poll(LONG * 1000))


def complete(jobs):
    """All requests, though nobody has asked for the results"""
    while any([job.progress() for job in jobs]):
        pass


def idle_ranks_hear_that_their_run_has_ended():
    ones = [np.ones(1000, np.float32) for _ in range(WORKERS)]
    with Run() as jobs:
        requests = [job.allreduce_start(a) for job, a in zip(jobs, ones)]
        complete(jobs)
        rack("job_del", JOB)
        try:
            for job in jobs:
                expect(readable(job), True)
                error = failure(job.progress)
                expect(error.errno, errno.EIDRM)
                expect(error.reason, atp.Reason.REMOVED)
                expect(failure(job.progress).errno, errno.EIDRM)
        finally:
            add_job(JOB)
        # what was done before is done
        for request, array in zip(requests, ones):
            expect(request.done(), True)
            same(array, np.full(1000, WORKERS, np.float32))


def memory_is_short_for_a_moment():
    rng = np.random.default_rng(10)
    arrays = gradients(rng, 3000000)
    want = total(arrays)
    with Run() as jobs:
        requests = [
            job.allreduce_start(array) for job, array in
            zip(jobs[:-1], arrays)
        ]
        last = jobs[-1]
        end = last.info().end
        with no_memory():
            # there is nothing to wait for
            requests.append(last.allreduce_start(arrays[-1]))
            for _ in range(5):
                expect(last.progress(), 1)
            expect(last.info().end, end)
        last.progress()
        expect(last.info().end > end, True)
        with no_memory():
            # what is in flight is waited for, and no more can be pushed
            ends = [job.info().end for job in jobs]
            while any([job.info().una < min(ends) for job in jobs]):
                for job in jobs:
                    expect(job.progress(), 1)
            expect([job.info().end for job in jobs], ends)
        settle({(job, 0): r for job, r in zip(jobs, requests)})
        for array in arrays:
            same(array, want)


def memory_is_short_for_good():
    with Run() as jobs, no_memory():
        error = failure(jobs[0].allreduce, np.ones(1000000, np.float32))
        expect(error.errno, errno.ENOBUFS)


@contextlib.contextmanager
def interrupted_after(name):
    """A signal comes when that function of the library has returned."""
    function = getattr(atp._lib, name)

    def call(*args):
        setattr(atp._lib, name, function)
        function(*args)
        raise KeyboardInterrupt

    setattr(atp._lib, name, call)
    try:
        yield
    except KeyboardInterrupt:
        return
    finally:
        setattr(atp._lib, name, function)
    raise AssertionError(f"nothing calls {name}")


def a_wait_is_interrupted():
    rng = np.random.default_rng(11)
    # a copy is reduced, and must be copied back
    arrays = [a[::2] for a in gradients(rng, 1001)]
    want = total(arrays)
    with Run() as jobs:
        first = jobs[0].allreduce_start(arrays[0])
        with interrupted_after("atp_wait_at"):
            first.wait()
        requests = [first] + [
            job.allreduce_start(array) for job, array in
            zip(jobs[1:], arrays[1:])
        ]
        complete(jobs)
        with interrupted_after("atp_wait_at"):
            first.wait()
        for request, array in zip(requests, arrays):
            expect(request.wait() is array, True)
            same(array, want)
        # the array is the caller's again
        arrays[0][:] = 0
        expect(first.done(), True)
        expect(bool(arrays[0].any()), False)
        # likewise if it has failed
        large = [np.full(3, 2**30, np.int32) for _ in jobs]
        requests = [job.allreduce_start(a) for job, a in zip(jobs, large)]
        complete(jobs)
        with interrupted_after("atp_wait_at"):
            requests[0].wait()
        for request in requests * 2:
            expect(failure(request.wait).errno, errno.EOVERFLOW)
        expect([len(job._requests) for job in jobs], [0] * WORKERS)


def joining_and_leaving_are_interrupted():
    with inside("w0"):
        with interrupted_after("atp_join_at"):
            atp.join(JOB, 0)
    # so the rank is free
    with Run() as jobs:
        with interrupted_after("atp_allreduce_start_at"):
            jobs[0].allreduce_start(np.ones(9, np.float32))
        with interrupted_after("atp_leave_at"):
            jobs[0].close()
        jobs[0].close()
        refused(ValueError, jobs[0].progress)
        with inside("w0"):
            atp.Job(JOB, 0).close()


def numbers_that_do_not_fit_are_refused():
    for job, rank in (
        (2**32 + JOB, 0), (-1, 0), (JOB, 2**32), (JOB, -1), (JOB, 0xFFFF),
    ):
        text = str(refused(ValueError, atp.join, job, rank))
        if f"no job {job}" not in text and f"no rank {rank}" not in text:
            raise AssertionError(text)
    refused(ValueError, atp.serve, 2**32 + JOB)


def flags_that_there_are_not():
    """The last failure is described, whatever failed before."""
    failure(atp.join, 99, 0)
    handle = ctypes.c_void_p()
    expect(atp._lib.atp_join_at(ctypes.byref(handle), JOB, 2, 0x83), -1)
    expect((ctypes.get_errno(), handle.value), (errno.EINVAL, None))
    expect(atp._describe(None), f"job {JOB}: atp_join() knows no flags 0x82")


TESTS = (
    a_silent_rank_is_named,
    a_silent_ps_is_told_from_a_silent_rank,
    a_path_that_loses_data_is_told_from_silence,
    ranks_that_left_are_named,
    ranks_that_disagree_are_named,
    a_rank_that_started_again_is_named,
    a_ps_that_has_forgotten_says_so,
    a_rank_that_is_late_is_named,
    a_path_that_takes_less_is_named,
    a_rank_that_is_configured_differently_is_named,
    joining_fails_in_words,
    arguments_are_checked,
    idle_ranks_hear_that_their_run_has_ended,
    memory_is_short_for_a_moment,
    memory_is_short_for_good,
    a_wait_is_interrupted,
    joining_and_leaving_are_interrupted,
    numbers_that_do_not_fit_are_refused,
    flags_that_there_are_not,
)


if __name__ == "__main__":
    sys.exit(main(TESTS))
