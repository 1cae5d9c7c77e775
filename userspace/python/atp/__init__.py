# SPDX-License-Identifier: GPL-2.0
"""All-reduce of NumPy arrays over AF_ATP.

    import atp

    with atp.join(7, rank) as job:
        job.allreduce(gradient)             # float32 or int32, in place
        request = job.allreduce_start(next) # or in the background
        request.wait()

All ranks call the same operations, with arrays of the same sizes and types,
in the same order; every rank gets the same bits.  A job and its requests are
for one thread at a time.

In a job with an application at the PS, ranks get what that makes of the sums:

    with atp.serve(7) as server:
        for sums in server:             # until all ranks have left
            server.push(optimise(sums.first, sums.values))
"""

import collections
import ctypes
import enum
import errno
import os
import select
import time
import types
import typing

import numpy

__all__ = [
    "Error", "Job", "Reason", "Request", "Server", "Sums", "join", "serve",
]


class Reason(enum.IntEnum):
    """Why a run ended (enum atp_reason)."""

    NONE = 0
    LEFT = 1
    SILENT = 2
    REJOIN = 3
    DISAGREE = 4
    EPOCH = 5
    MISMATCH = 6
    REMOVED = 7
    MTU = 8
    LATE = 9
    SERVER = 10
    PS_SILENT = 11
    UNANSWERED = 12


class _Info(ctypes.Structure):
    """struct atp_info"""

    _fields_ = [
        (name, ctypes.c_uint32)
        for name in (
            "state", "reason", "ranks", "job", "rank", "workers", "epoch",
            "fragment", "window", "scale", "una", "nxt", "end", "cwnd",
            "ssthresh", "srtt_us", "rto_us", "flags",
        )
    ] + [
        (name, ctypes.c_uint64)
        for name in (
            "sent", "resent", "fast_retransmits", "timeouts", "ecn", "raw",
            "duplicates", "chunks",
        )
    ]


class _Sum(ctypes.Structure):
    """struct atp_sum"""

    _fields_ = [
        ("first", ctypes.c_uint64),
        ("count", ctypes.c_size_t),
        ("type", ctypes.c_int),
        ("last", ctypes.c_int),
    ]


_NOWAIT = 1
_SERVER = 0xFFFF
_INFO_SERVER = 1
# enum atp_data_type
_INT32, _FLOAT32 = numpy.dtype("int32"), numpy.dtype("float32")
_TYPES = {_INT32: 1, _FLOAT32: 2}


def _load():
    lib = ctypes.CDLL(os.environ.get("LIBATP", "libatp.so.1"), use_errno=True)
    handle, size = ctypes.c_void_p, ctypes.c_size_t
    # An exception that a signal raises comes between the return of a call and
    # the use of what it returned: so handles are kept where the library clears
    # them.
    at = ctypes.POINTER(handle)
    for name, result, *arguments in (
        ("atp_join_at", ctypes.c_int, at, ctypes.c_uint32, ctypes.c_uint32,
         ctypes.c_uint),
        ("atp_leave_at", None, at),
        ("atp_joined", ctypes.c_int, handle, ctypes.c_int),
        ("atp_allreduce_start_at", ctypes.c_int, at, handle, handle, size,
         ctypes.c_int),
        ("atp_wait_at", ctypes.c_int, at, ctypes.c_int,
         ctypes.POINTER(ctypes.c_int)),
        ("atp_progress", ctypes.c_int, handle),
        ("atp_pull_sum", ctypes.c_int, handle, handle, size,
         ctypes.POINTER(_Sum), ctypes.c_int),
        ("atp_push_result", ctypes.c_int, handle, handle, size),
        ("atp_fd", ctypes.c_int, handle),
        ("atp_get_info", ctypes.c_int, handle, ctypes.POINTER(_Info)),
        ("atp_describe", ctypes.c_int, handle, ctypes.c_char_p, size),
    ):
        function = getattr(lib, name)
        function.restype = result
        function.argtypes = arguments
    return lib


_lib = _load()


def _describe(handle):
    text = ctypes.create_string_buffer(512)
    _lib.atp_describe(handle, text, len(text))
    return text.value.decode()


def _reason(number):
    try:
        return Reason(number)
    except ValueError:  # of a newer kernel
        return number


def _ranks(bits):
    return tuple(rank for rank in range(32) if bits >> rank & 1)


class Error(OSError):
    """A run ended, or could not begin.

    errno   as everywhere
    reason  why the run ended (Reason)
    ranks   who is to blame, a tuple
    """

    def __init__(self, number, text, reason=Reason.NONE, ranks=()):
        super().__init__(number, text)
        self.reason = reason
        self.ranks = ranks


def _left(deadline):
    if deadline is None:
        return None
    return max(0, deadline - time.monotonic())


def _deadline(timeout):
    return None if timeout is None else time.monotonic() + timeout


class Request:
    """An all-reduce under way; made by Job.allreduce_start()."""

    def __init__(self, job, array):
        self._job = job
        self._array = array
        # What cannot be reduced in place is copied, and copied back.
        work = numpy.require(array, requirements=["C", "A"])
        self._work = work
        # No wait() is interrupted by a signal while it is in the library, so
        # that Python handles it: see wait().
        self._handle = ctypes.c_void_p()
        # errno if it has failed, else 0, once there is no handle
        self._number = ctypes.c_int()
        self._error = None
        opened = job._open()
        # first: the memory must stay, whatever interrupts what follows
        job._requests.add(self)
        if _lib.atp_allreduce_start_at(
            ctypes.byref(self._handle), opened, work.ctypes.data, work.size,
            _TYPES[work.dtype],
        ):
            job._requests.discard(self)
            raise job._error(ctypes.get_errno())

    def done(self):
        """Whether the array holds the sums; raises Error if it never will."""
        if self._handle:
            self._job._open()
            if not _lib.atp_wait_at(
                ctypes.byref(self._handle), 0, ctypes.byref(self._number)
            ):
                return False
        # Each of these is for once, or does no harm twice: the call before this
        # one may have been interrupted anywhere.
        self._job._requests.discard(self)
        if self._work is not self._array:
            self._array[...] = self._work
            self._work = self._array
        if self._number.value and not self._error:
            self._error = self._job._error(self._number.value)
        if self._error:
            raise self._error
        return True

    def wait(self, timeout=None):
        """Wait until the array holds the sums, and return it.

        timeout is in seconds; TimeoutError leaves the request as it is.
        """
        deadline = _deadline(timeout)
        while not self.done():
            self._job._sleep(deadline)
        return self._array


class Job:
    """A rank of a job; made by join()."""

    def __init__(self, job, rank):
        if rank == _SERVER:
            raise ValueError(
                f"there is no rank {rank}; serve() makes the results"
            )
        self._start(job, rank)

    def _start(self, job, rank):
        # ctypes cuts off what is more, and the rest may be another's
        if not 0 <= job < 2**32:
            raise ValueError(f"there is no job {job}, IDs are below 2**32")
        if not 0 <= rank < 2**32:
            raise ValueError(f"there is no rank {rank}")
        self._requests = set()
        self._handle = ctypes.c_void_p()
        try:
            failed = _lib.atp_join_at(
                ctypes.byref(self._handle), job, rank, _NOWAIT
            )
        except BaseException:
            # nobody else can: the caller gets no Job
            self.close()
            raise
        if failed:
            number = ctypes.get_errno()
            raise Error(number, _describe(None))

    def _open(self):
        if not self._handle:
            raise ValueError("this rank has left its job")
        return self._handle

    def _error(self, number):
        if number == errno.EOVERFLOW:
            return Error(number, "a sum of integers does not fit")
        info = self.info()
        return Error(
            number,
            _describe(self._handle),
            info.reason,
            info.ranks,
        )

    def _sleep(self, deadline):
        """Until there is something to do; signals are handled here."""
        left = _left(deadline)
        if left == 0:
            raise TimeoutError(errno.ETIMEDOUT, self.describe())
        poll = select.poll()
        poll.register(self.fileno(), select.POLLIN)
        poll.poll(None if left is None else left * 1000)

    def _wait_joined(self, timeout):
        deadline = _deadline(timeout)
        while True:
            result = _lib.atp_joined(self._open(), 0)
            if result > 0:
                return
            if result < 0:
                raise self._error(ctypes.get_errno())
            self._sleep(deadline)

    def allreduce(self, array):
        """Replace the values by the sums over all ranks; returns the array."""
        return self.allreduce_start(array).wait()

    def allreduce_start(self, array):
        """Begin that and return a Request; leave the array alone until then.

        Call wait() or done() of every request.
        """
        if not isinstance(array, numpy.ndarray) or array.dtype not in _TYPES:
            raise TypeError("an array of float32 or int32 is needed")
        if not array.flags.writeable:
            raise ValueError("the array is read-only")
        return Request(self, array)

    def progress(self):
        """Do what can be done at once; returns requests that go on."""
        count = _lib.atp_progress(self._open())
        if count < 0:
            raise self._error(ctypes.get_errno())
        return count

    def fileno(self):
        """Readable when progress() or a request's done() is worth a call."""
        fd = _lib.atp_fd(self._open())
        if fd < 0:
            raise self._error(ctypes.get_errno())
        return fd

    def info(self):
        """What the socket knows: the members of struct atp_info.

        reason is a Reason; ranks is a tuple: who is to blame, or waited for;
        server says whether it is the application at the PS that is.
        """
        raw = _Info()
        _lib.atp_get_info(self._open(), ctypes.byref(raw))
        info = {name: getattr(raw, name) for name, _ in raw._fields_}
        info["server"] = bool(info.pop("flags") & _INFO_SERVER)
        info["reason"] = _reason(raw.reason)
        info["ranks"] = _ranks(raw.ranks)
        return types.SimpleNamespace(**info)

    def describe(self):
        """How things stand, in words."""
        return _describe(self._open())

    def close(self):
        """Leave the job; requests that are not done never will be."""
        _lib.atp_leave_at(ctypes.byref(self._handle))
        self._requests.clear()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __del__(self):
        if getattr(self, "_handle", None):
            self.close()


class Sums(typing.NamedTuple):
    """Sums over all ranks of consecutive values; from Server.pull().

    first   values that came before in this run
    values  array of float32 or int32; may be written
    last    they are the end of what the ranks have pushed as one chunk
    """

    first: int
    values: numpy.ndarray
    last: bool


class Server(Job):
    """The application that makes the results at the PS; made by serve()."""

    # Values that are pulled at once, more than the longest fragment has
    ROOM = 65536

    def __init__(self, job):  # pylint: disable=super-init-not-called
        # how many sums of which type were pulled and have no results
        self._owed = collections.deque()
        self._start(job, _SERVER)

    def pull(self, timeout=None):
        """Return the next Sums, or None when all ranks have left.

        They come as they are complete.  More may only come when these were
        answered.  timeout is in seconds; then TimeoutError.
        """
        values = numpy.empty(self.ROOM, numpy.int32)
        what = _Sum()
        deadline = _deadline(timeout)
        while True:
            result = _lib.atp_pull_sum(
                self._open(), values.ctypes.data, values.size,
                ctypes.byref(what), 0,
            )
            if result < 0:
                raise self._error(ctypes.get_errno())
            if result:
                break
            self._sleep(deadline)
        if not what.count:
            return None
        values = values[:what.count]
        if what.type == _TYPES[_FLOAT32]:
            values = values.view(numpy.float32)
        self._owed.append((what.count, values.dtype))
        return Sums(what.first, values, bool(what.last))

    def push(self, results):
        """Give all ranks the results for the oldest sums without any.

        An array of their type, with one for each value of one or several
        Sums; every rank gets these bits.
        """
        if results.dtype not in _TYPES:
            raise TypeError("an array of float32 or int32 is needed")
        left = results.size
        for count, dtype in self._owed:
            if left > 0 and dtype != results.dtype:
                raise TypeError(
                    f"results of {results.dtype} for sums of {dtype}"
                )
            left -= count
        results = numpy.require(results, requirements=["C", "A"])
        if _lib.atp_push_result(
            self._open(), results.ctypes.data, results.size
        ):
            number = ctypes.get_errno()
            if number in (errno.EAGAIN, errno.EINVAL):
                raise ValueError("no sums of that length wait for results")
            raise self._error(number)
        left = results.size
        # a pull that was interrupted is not among them
        while left and self._owed:
            count, dtype = self._owed.popleft()
            if count > left:
                self._owed.appendleft((count - left, dtype))
            left -= min(count, left)

    def __iter__(self):
        while (sums := self.pull()) is not None:
            yield sums


def serve(job, timeout=None):
    """Make the results of a job, on its PS host: returns a Server when all
    ranks have joined.

    timeout is in seconds, and without one there is no limit.
    """
    server = Server(job)
    try:
        server._wait_joined(timeout)
    except BaseException:
        server.close()
        raise
    return server


def join(job, rank, timeout=None):
    """Join a job and return a Job when all ranks have.

    timeout is in seconds, and without one there is no limit: other ranks may
    be started later.
    """
    member = Job(job, rank)
    try:
        member._wait_joined(timeout)
    except BaseException:
        member.close()
        raise
    return member
