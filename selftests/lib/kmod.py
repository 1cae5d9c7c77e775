# SPDX-License-Identifier: GPL-2.0
"""The module, loaded and unloaded by system calls: a process would cost more
than the call."""

import ctypes
import errno
import os
import subprocess
import time

LIMIT = 60
FINIT_MODULE, DELETE_MODULE = 313, 176    # x86-64

_libc = ctypes.CDLL(None, use_errno=True)
_file = None


def _call(*args):
    if _libc.syscall(*args):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def loaded():
    return os.path.isdir("/sys/module/atp")


def users():
    """References on the module: sockets, and calls in progress."""
    with open("/sys/module/atp/refcnt", encoding="ascii") as f:
        return int(f.read())


def load():
    """Its dependencies are there already, unless this is the first time."""
    global _file    # pylint: disable=global-statement
    if not _file:
        subprocess.run(["modprobe", "atp"], check=True)
        _file = subprocess.run(["modinfo", "-n", "atp"], check=True, text=True,
                               capture_output=True).stdout.strip()
    if not loaded():
        load_now()


def load_from(file):
    """Another build of it from now on; load() has been called once before."""
    global _file    # pylint: disable=global-statement
    _file = file


def load_now():
    """After load() and unload(): the system call alone."""
    fd = os.open(_file, os.O_RDONLY)
    try:
        _call(FINIT_MODULE, fd, b"", 0)
    finally:
        os.close(fd)


def unload_now():
    """Once; an OSError says that it is in use."""
    _call(DELETE_MODULE, b"atp", os.O_NONBLOCK)


def unload():
    """As soon as nobody uses it: what was closed is freed a little later."""
    end = time.monotonic() + LIMIT
    while loaded():
        try:
            unload_now()
        except OSError as e:
            if e.errno not in (errno.EWOULDBLOCK, errno.EBUSY, errno.ENOENT):
                raise
            if time.monotonic() > end:
                raise
            time.sleep(0.001)
