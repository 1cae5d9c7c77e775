#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""What each call on a socket says, and how runs end; plain Python sockets."""

import ctypes
import errno
import os
import select
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(
    0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib")
)
from rack import atp, inside, rack, run  # noqa: E402

AF_ATP = 18
SOL_ATP = 299
ATP_JOIN, ATP_DTYPE, ATP_INFO = 1, 2, 3
INT32, FLOAT32 = 1, 2
STATE_FAILED = 4
LEFT, SILENT, REJOIN, DISAGREE, EPOCH, MISMATCH, REMOVED = range(1, 8)
PS_SILENT = 11
# of struct atp_info
INFO = "=18I8Q"

WORKERS = 3
# Nobody is taken for silent here, however slow the machine is, ...
JOB, PATIENT = 7, 30.0
# ... and here it is soon noticed who is.
BRISK, TIMEOUT = 9, 4.0
LONG = 60


class Rank:
    """A socket on the host of a rank."""

    def __init__(self, rank, job=JOB, host=None, blocking=False):
        self.rank, self.job = rank, job
        with inside(host or f"w{rank}"):
            self.sock = socket.socket(AF_ATP, socket.SOCK_SEQPACKET, 0)
        self.sock.setblocking(blocking)

    def join(self):
        self.sock.setsockopt(
            SOL_ATP, ATP_JOIN, struct.pack("=II", self.job, self.rank)
        )

    def begin(self):
        """Join without waiting."""
        try:
            self.join()
        except BlockingIOError as error:
            expect(error.errno, errno.EINPROGRESS)

    def wait(self, events, seconds=LONG):
        poll = select.poll()
        poll.register(self.sock, events)
        got = poll.poll(seconds * 1000)
        return got[0][1] if got else 0

    def joined(self):
        expect(bool(self.wait(select.POLLOUT)), True)
        expect(self.error(), 0)

    def error(self):
        return self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)

    def info(self):
        size = struct.calcsize(INFO)
        raw = self.sock.getsockopt(SOL_ATP, ATP_INFO, 1000)
        expect(len(raw), size)
        state, reason, ranks = struct.unpack(INFO, raw)[:3]
        return state, reason, ranks

    def push(self, *values):
        return self.sock.send(struct.pack(f"={len(values)}i", *values))

    def push_if_it_goes(self, *values):
        """The run may have ended by now."""
        try:
            self.push(*values)
        except OSError as error:
            expect(self.info()[0], STATE_FAILED)
            expect(
                error.errno in
                (errno.ECONNRESET, errno.EPROTO, errno.ETIMEDOUT,
                 errno.EHOSTDOWN),
                True,
            )

    def pull(self, count=1, seconds=LONG):
        """The result, waiting for it; or the error."""
        expect(bool(self.wait(select.POLLIN, seconds)), True)
        return struct.unpack(f"={count}i", self.sock.recv(count * 4))

    def close(self):
        self.sock.close()


class Run:
    """All ranks of a run, joined; integers."""

    def __init__(self, workers=WORKERS, job=JOB):
        self.ranks = [Rank(rank, job) for rank in range(workers)]

    def __enter__(self):
        for rank in self.ranks:
            rank.begin()
        for rank in self.ranks:
            rank.joined()
            rank.sock.setsockopt(SOL_ATP, ATP_DTYPE, INT32)
        return self.ranks

    def __exit__(self, *_):
        for rank in self.ranks:
            rank.close()


def expect(got, want):
    if got != want:
        raise AssertionError(f"got {got}, expected {want}")


class Msghdr(ctypes.Structure):
    """struct msghdr"""

    _fields_ = [
        ("name", ctypes.c_void_p),
        ("namelen", ctypes.c_uint32),
        ("iov", ctypes.POINTER(ctypes.c_size_t)),
        ("iovlen", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("controllen", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    ]


def recvmsg(sock, size, flags):
    """What was received, and the flags of it."""
    data = ctypes.create_string_buffer(size)
    iov = (ctypes.c_size_t * 2)(ctypes.addressof(data), size)
    msg = Msghdr(iov=iov, iovlen=1)
    libc = ctypes.CDLL(None, use_errno=True)
    got = libc.recvmsg(sock.fileno(), ctypes.byref(msg), flags)
    if got < 0:
        raise OSError(ctypes.get_errno(), "recvmsg")
    return data.raw[:got], msg.flags


def fails(number, function, *args):
    try:
        result = function(*args)
    except OSError as error:
        if error.errno != number:
            raise
        return
    raise AssertionError(
        f"got {result}, expected {errno.errorcode[number]}"
    )


def ends(rank, number, reason, ranks):
    """The rank learns of the end of its run."""
    if not rank.wait(select.POLLIN):
        raise AssertionError(f"nothing in {LONG} s, {rank.info()}")
    fails(number, rank.sock.recv, 4)
    expect(rank.info(), (STATE_FAILED, reason, ranks))
    # and nothing else from then on
    fails(number, rank.sock.send, bytes(4))
    fails(number, rank.sock.recv, 4)


def all_to_all(ranks, value=1):
    """One chunk, as a sign of life."""
    for rank in ranks:
        rank.push(value + rank.rank)
    total = sum(value + rank.rank for rank in ranks)
    for rank in ranks:
        expect(rank.pull(), (total,))


def joining_names_what_is_wrong():
    for rank, job, host, number in (
        (0, 4711, "w0", errno.ENOENT),
        (WORKERS, JOB, "w0", errno.EINVAL),
        (1, JOB, "w0", errno.EADDRNOTAVAIL),
    ):
        worker = Rank(rank, job, host)
        fails(number, worker.join)
        worker.close()


def a_rank_is_taken_once():
    first, second = Rank(0), Rank(0)
    first.begin()
    fails(errno.EADDRINUSE, second.join)
    first.close()
    second.begin()
    second.close()


def a_stranger_may_not_join():
    code = (
        "import socket, struct, sys\n"
        f"s = socket.socket({AF_ATP}, socket.SOCK_SEQPACKET, 0)\n"
        "try:\n"
        f" s.setsockopt({SOL_ATP}, {ATP_JOIN},"
        f" struct.pack('=II', {JOB}, 0))\n"
        "except OSError as e: sys.exit(e.errno)\n"
    )
    with inside("w0"):
        done = subprocess.run(
            ["setpriv", "--reuid", "65534", "--regid", "65534",
             "--clear-groups", "/usr/bin/python3", "-c", code],
            check=False,
        )
    if done.returncode not in (errno.EACCES, errno.EPERM):
        raise AssertionError(f"exit status {done.returncode}")


def an_owner_may_join():
    expect(atp("w0", "job", "set", JOB, "uid", 65534)[0], 0)
    code = (
        "import socket, struct, sys\n"
        f"s = socket.socket({AF_ATP}, socket.SOCK_SEQPACKET, 0)\n"
        "s.setblocking(False)\n"
        "try:\n"
        f" s.setsockopt({SOL_ATP}, {ATP_JOIN},"
        f" struct.pack('=II', {JOB}, 0))\n"
        "except OSError as e: sys.exit(e.errno)\n"
    )
    with inside("w0"):
        done = subprocess.run(
            ["setpriv", "--reuid", "65534", "--regid", "65534",
             "--clear-groups", "/usr/bin/python3", "-c", code],
            check=False,
        )
    expect(done.returncode, errno.EINPROGRESS)


def joining_takes_all_ranks():
    ranks = [Rank(rank) for rank in range(WORKERS)]
    for rank in ranks[:-1]:
        fails(errno.EINPROGRESS, rank.join)
        fails(errno.EALREADY, rank.join)
        fails(errno.ENOTCONN, rank.sock.send, bytes(4))
    # nobody is told before the last has come
    expect(ranks[0].wait(select.POLLOUT, 0.2), 0)
    ranks[-1].begin()
    for rank in ranks:
        rank.joined()
        # as connect(): the first call after says how it went
        rank.join()
        fails(errno.EISCONN, rank.join)
        rank.sock.setsockopt(SOL_ATP, ATP_DTYPE, INT32)
    all_to_all(ranks)
    for rank in ranks:
        rank.close()


def chunks_have_rules():
    with Run() as ranks:
        sock = ranks[0].sock
        fails(errno.EINVAL, sock.send, b"")
        fails(errno.EINVAL, sock.send, bytes(6))
        fails(errno.EMSGSIZE, sock.send, bytes(64 << 20))
        fails(errno.EINVAL, sock.setsockopt, SOL_ATP, ATP_DTYPE, 3)
        fails(errno.EAGAIN, sock.recv, 4)
        all_to_all(ranks)


def results_are_whole_chunks():
    with Run() as ranks:
        for rank in ranks:
            rank.push(1, 2, 3)
            rank.push(4)
            rank.push(5, 6)
        sock = ranks[0].sock
        ranks[0].wait(select.POLLIN)
        data = sock.recv(100, socket.MSG_PEEK)
        expect(struct.unpack("=3i", data), (3, 6, 9))
        # Python's own recvmsg() refuses families that it does not know
        expect(recvmsg(sock, 12, socket.MSG_PEEK)[1] & socket.MSG_TRUNC, 0)
        data, flags = recvmsg(sock, 8, 0)
        expect(struct.unpack("=2i", data), (3, 6))
        expect(flags & socket.MSG_TRUNC, socket.MSG_TRUNC)
        expect(ranks[0].pull(), (12,))
        expect(ranks[0].pull(2), (15, 18))


def a_full_socket_says_so():
    size = 1 << 20
    with Run() as ranks:
        pushed = []
        for rank in ranks:
            count = 0
            try:
                while count < 100:
                    expect(rank.sock.send(bytes(size)), size)
                    count += 1
            except BlockingIOError:
                pass
            if not 0 < count < 100:
                raise AssertionError(f"{count} chunks fit")
            pushed.append(count)
        expect(len(set(pushed)), 1)
        for rank in ranks:
            # there is room only after a result was pulled
            expect(bool(rank.wait(select.POLLIN)), True)
            expect(rank.wait(select.POLLOUT, 0) & select.POLLOUT, 0)
            expect(rank.sock.recv(size), bytes(size))
            flags = rank.wait(select.POLLOUT)
            expect(flags & select.POLLOUT, select.POLLOUT)
            expect(rank.sock.send(bytes(size)), size)


def waiting_has_a_limit():
    with Run() as ranks:
        sock = ranks[0].sock
        sock.setblocking(True)
        # as applications in C do; Python's settimeout() polls
        sock.setsockopt(
            socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("=qq", 0, 200000)
        )
        ranks[0].push(1)
        began = time.monotonic()
        fails(errno.EAGAIN, sock.recv, 4)
        # a tick may begin before it is asked for
        if time.monotonic() - began < 0.19:
            raise AssertionError("it did not wait")
        # the run is not over
        for rank in ranks[1:]:
            rank.push(1)
        for rank in ranks:
            expect(rank.pull(), (WORKERS,))


def a_sum_that_does_not_fit_is_an_error():
    with Run() as ranks:
        for rank in ranks:
            rank.push(1 << 30)
            rank.push(rank.rank)
        for rank in ranks:
            rank.wait(select.POLLIN)
            fails(errno.EOVERFLOW, rank.sock.recv, 4)
            expect(rank.pull(), (sum(range(WORKERS)),))


def waiting_names_the_missing():
    with Run() as ranks:
        ranks[0].push(1)
        ranks[1].push(1)
        # told when a resent fragment is answered
        end = time.monotonic() + LONG
        while not (ranks[0].info()[2] == ranks[1].info()[2] == 1 << 2):
            if time.monotonic() > end:
                raise AssertionError(
                    f"{ranks[0].info()} {ranks[1].info()}"
                )
            time.sleep(0.05)
        ranks[2].push(1)
        for rank in ranks:
            expect(rank.pull(), (WORKERS,))


def one_that_leaves_is_named():
    with Run() as ranks:
        all_to_all(ranks)
        ranks[1].close()
        ranks[0].push(1)
        # this may be too late for it
        ranks[2].push_if_it_goes(1)
        ends(ranks[0], errno.ECONNRESET, LEFT, 1 << 1)
        ends(ranks[2], errno.ECONNRESET, LEFT, 1 << 1)


def results_outlive_the_run():
    with Run() as ranks:
        for rank in ranks:
            rank.push(1)
        for rank in ranks:
            rank.wait(select.POLLIN)
        ranks[1].close()
        ranks[0].push(1)
        poll = select.poll()
        poll.register(ranks[0].sock, 0)
        expect(bool(poll.poll(LONG * 1000)), True)
        expect(ranks[0].pull(), (WORKERS,))
        ends(ranks[0], errno.ECONNRESET, LEFT, 1 << 1)
        # who needs nothing of the one that left is not disturbed
        expect(ranks[2].pull(), (WORKERS,))


def a_lost_leave_is_said_again():
    with Run() as ranks:
        all_to_all(ranks)
        rack("netem", "w2", "out", "loss", "100%")
        try:
            ranks[2].close()
        finally:
            rack("netem", "w2", "out")
        # it has left, it is not silent
        for rank in ranks[:2]:
            rank.push_if_it_goes(1)
        for rank in ranks[:2]:
            ends(rank, errno.ECONNRESET, LEFT, 1 << 2)


def a_silent_host_is_named():
    with Run(job=BRISK) as ranks:
        all_to_all(ranks)
        rack("link", "w2", "down")
        try:
            for rank in ranks:
                rank.push_if_it_goes(1)
            for rank in ranks[:2]:
                ends(rank, errno.ETIMEDOUT, SILENT, 1 << 2)
            # who is cut off hears nothing of the PS
            ends(ranks[2], errno.EHOSTDOWN, PS_SILENT, 0)
        finally:
            rack("link", "w2", "up")


def a_silent_ps_is_noticed():
    with Run(job=BRISK) as ranks:
        all_to_all(ranks)
        rack("link", "ps", "down")
        try:
            for rank in ranks:
                rank.push_if_it_goes(1)
            for rank in ranks:
                ends(rank, errno.EHOSTDOWN, PS_SILENT, 0)
        finally:
            rack("link", "ps", "up")


def idle_ranks_notice_silence_too():
    with Run(job=BRISK) as ranks:
        rack("link", "w2", "down")
        try:
            ends(ranks[0], errno.ETIMEDOUT, SILENT, 1 << 2)
        finally:
            rack("link", "w2", "up")


def a_stopped_process_is_no_dead_host():
    with Run(job=BRISK) as ranks:
        ranks[0].push(1)
        ranks[1].push(1)
        # the third does nothing for longer than the timeout
        expect(ranks[0].wait(select.POLLIN, 1.5 * TIMEOUT), 0)
        ranks[2].push(1)
        for rank in ranks:
            expect(rank.pull(), (WORKERS,))


def one_that_starts_again_ends_the_run():
    with Run() as ranks:
        all_to_all(ranks)
        # its LEAVE is lost, as that of a host that crashed
        rack("netem", "w2", "out", "loss", "100%")
        try:
            ranks[2].close()
        finally:
            rack("netem", "w2", "out")
        again = Rank(2)
        again.begin()
        # the others are told as soon as they need it, whatever comes first
        for rank in ranks[:2]:
            rank.push_if_it_goes(1)
        for rank in ranks[:2]:
            ends(rank, errno.ECONNRESET, REJOIN, 1 << 2)
        # it waits for the next run, which begins when the others join
        others = [Rank(0), Rank(1)]
        for rank in ranks[:2]:
            rank.close()
        for rank in others:
            rank.begin()
        for rank in [*others, again]:
            rank.joined()
            rank.sock.setsockopt(SOL_ATP, ATP_DTYPE, INT32)
        all_to_all([*others, again])
        for rank in [*others, again]:
            rank.close()


def ranks_that_disagree_are_told():
    with Run() as ranks:
        ranks[0].push(1, 2)
        ranks[1].push_if_it_goes(1)
        ranks[2].push_if_it_goes(1)
        for rank in ranks:
            expect(bool(rank.wait(select.POLLIN)), True)
            fails(errno.EPROTO, rank.sock.recv, 4)
            expect(rank.info()[:2], (STATE_FAILED, DISAGREE))
    with Run() as ranks:
        ranks[0].sock.setsockopt(SOL_ATP, ATP_DTYPE, FLOAT32)
        for rank in ranks:
            rank.push_if_it_goes(1)
        for rank in ranks:
            expect(bool(rank.wait(select.POLLIN)), True)
            fails(errno.EPROTO, rank.sock.recv, 4)
            expect(rank.info()[:2], (STATE_FAILED, DISAGREE))


def members():
    words = ["ps", "10.0.0.254"]
    for rank in range(WORKERS):
        words += ["worker", f"10.0.0.{rank + 1}"]
    return words


def job_again(host, *words):
    expect(atp(host, "job", "del", JOB)[0], 0)
    status, output = atp(
        host, "job", "add", JOB, *members(), "timeout",
        int(PATIENT * 1000), *words
    )
    expect((status, output), (0, ""))


def another_configuration_is_refused():
    job_again("w1", "scale", 1000)
    try:
        others = [Rank(0), Rank(2)]
        worker = Rank(1)
        for rank in [*others, worker]:
            rank.begin()
        expect(bool(worker.wait(select.POLLOUT)), True)
        expect(worker.error(), errno.EPROTO)
        expect(worker.info()[:2], (STATE_FAILED, MISMATCH))
        for rank in [*others, worker]:
            rank.close()
    finally:
        job_again("w1")


def a_ps_that_forgot_is_noticed():
    with Run() as ranks:
        all_to_all(ranks)
        rack("link", "ps", "down")
        job_again("ps")
        rack("link", "ps", "up")
        for rank in ranks:
            ends(rank, errno.ESTALE, EPOCH, 0)


def removing_the_job_ends_the_run():
    with Run() as ranks:
        all_to_all(ranks)
        expect(atp("ps", "job", "del", JOB)[0], 0)
        for rank in ranks:
            ends(rank, errno.EIDRM, REMOVED, 0)
        status, output = atp(
            "ps", "job", "add", JOB, *members(), "timeout",
            int(PATIENT * 1000),
        )
        expect((status, output), (0, ""))
    with Run() as ranks:
        all_to_all(ranks)


def after_each_failure_a_new_run_works():
    for _ in range(5):
        with Run() as ranks:
            all_to_all(ranks)
            ranks[0].close()
            ranks[1].push(1)
            ends(ranks[1], errno.ECONNRESET, LEFT, 1 << 0)


def two_jobs_do_not_meet():
    rack("job_add", 8, WORKERS, 4)
    try:
        with Run() as ranks, Run(job=8) as others:
            for rank in ranks:
                rank.push(1)
            for rank in others:
                rank.push(100)
            for rank in ranks:
                expect(rank.pull(), (WORKERS,))
            for rank in others:
                expect(rank.pull(), (100 * WORKERS,))
    finally:
        rack("job_del", 8)


TESTS = (
    joining_names_what_is_wrong,
    a_rank_is_taken_once,
    a_stranger_may_not_join,
    an_owner_may_join,
    joining_takes_all_ranks,
    chunks_have_rules,
    results_are_whole_chunks,
    a_full_socket_says_so,
    waiting_has_a_limit,
    a_sum_that_does_not_fit_is_an_error,
    waiting_names_the_missing,
    one_that_leaves_is_named,
    results_outlive_the_run,
    a_lost_leave_is_said_again,
    a_silent_host_is_named,
    a_silent_ps_is_noticed,
    idle_ranks_notice_silence_too,
    a_stopped_process_is_no_dead_host,
    one_that_starts_again_ends_the_run,
    ranks_that_disagree_are_told,
    another_configuration_is_refused,
    a_ps_that_forgot_is_noticed,
    removing_the_job_ends_the_run,
    after_each_failure_a_new_run_works,
    two_jobs_do_not_meet,
)


def main():
    subprocess.run(["modprobe", "atp"], check=True)
    rack("up", WORKERS, 1500)
    for job, timeout in ((JOB, PATIENT), (BRISK, TIMEOUT)):
        rack("job_add", job, WORKERS, 4, "timeout", int(timeout * 1000))
    try:
        return run(TESTS)
    finally:
        rack("down")


if __name__ == "__main__":
    sys.exit(main())
