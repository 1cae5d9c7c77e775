# SPDX-License-Identifier: GPL-2.0
"""What is said of a run that waits or has failed: events, stalls, error queue."""

import collections
import ctypes
import errno
import json
import os
import queue
import socket
import struct
import subprocess
import threading

from atptest import LIMIT, wait_for
from rack import TOP, atp, inside

# of struct sock_extended_err, struct atp_error
ERRMSG = "=IBBBBII8I"
MSG_ERRQUEUE = 0x2000
SOL_ATP, ATP_RECVERR = 299, 4

ErrorMessage = collections.namedtuple(
    "ErrorMessage", "error job rank reason ranks sequence missing"
)


def tell(host, *words):
    """What the tool says, as JSON."""
    status, output = atp(host, "-json", *words)
    if status:
        raise AssertionError(output)
    return json.loads(output)


def stalls(host, job):
    return tell(host, "job", "stall", job)


def stall_names(job, ranks, workers=("w0",)):
    """PS and hosts of workers say which fragment waits, and for whom."""

    def at(host):
        for stall in stalls(host, job):
            waiting = [w["rank"] for w in stall["waiting"]]
            if stall["state"] == "stalled" and waiting == list(ranks):
                return stall["fragment"]
        return None

    # what waits for a moment only may be another one
    def all_say():
        fragment = at("ps")
        if fragment is None or any(at(host) != fragment for host in workers):
            return None
        now = tell("ps", "job", "show", job)[0]["frontier"]
        return (fragment,) if fragment == now else None

    return wait_for(all_say, f"stall that names {ranks} to all")[0]


class _Msghdr(ctypes.Structure):
    """struct msghdr"""

    _fields_ = [
        ("name", ctypes.c_void_p),
        ("namelen", ctypes.c_uint32),
        ("iov", ctypes.c_void_p),
        ("iovlen", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("controllen", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    ]


def error_message(sock):
    """The message in the error queue, or None."""
    control = ctypes.create_string_buffer(256)
    # Python's own recvmsg() refuses families that it does not know
    msg = _Msghdr(control=ctypes.addressof(control), controllen=len(control))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.recvmsg(sock.fileno(), ctypes.byref(msg), MSG_ERRQUEUE) < 0:
        if ctypes.get_errno() == errno.EAGAIN:
            return None
        raise OSError(ctypes.get_errno(), "recvmsg")
    length, level, kind = struct.unpack_from("=Qii", control)
    if (length - 16, level, kind, bool(msg.flags & socket.MSG_CTRUNC)) != (
            struct.calcsize(ERRMSG), SOL_ATP, ATP_RECVERR, False):
        raise AssertionError(f"{length} bytes, {level}/{kind}, {msg.flags:#x}")
    (number, _, _, code, _, info, data, job, rank, _, reason, ranks, sequence,
     missing, _) = struct.unpack_from(ERRMSG, control, 16)
    if (code, info, data) != (reason, ranks, sequence):
        raise AssertionError((code, info, data, reason, ranks, sequence))
    return ErrorMessage(number, job, rank, reason, ranks, sequence, missing)


class Monitor:
    """The events of a job on a host."""

    def __init__(self, host, job):
        self.host, self.job = host, job
        self.lines = queue.Queue()
        with inside(host):
            self.process = subprocess.Popen(
                [os.path.join(TOP, "build/bin/atp"), "-json", "monitor",
                 "job", str(job)],
                stdout=subprocess.PIPE, text=True,
            )
        threading.Thread(target=self._read, daemon=True).start()
        wait_for(self._heard_change, "monitor that listens")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(json.loads(line))

    def _heard_change(self):
        status, output = atp(self.host, "job", "set", self.job, "uid", 0)
        if status:
            raise AssertionError(output)
        try:
            return self.lines.get(timeout=1)["event"] == "job-changed"
        except queue.Empty:
            return False

    def event(self, name, reason=None):
        """The next event of this name and reason, None for none; how a run
        ends by itself is no news."""
        while True:
            event = self.lines.get(timeout=LIMIT)
            if event["job"] != self.job:
                raise AssertionError(event)
            if event["event"] != name or not event.get("reason") and reason:
                continue
            if event.get("reason") != reason:
                raise AssertionError(event)
            return event
