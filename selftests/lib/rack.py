# SPDX-License-Identifier: GPL-2.0
"""The rack of rack.sh for tests in Python: commands, namespaces, TAP."""

import contextlib
import ctypes
import os
import subprocess
import sys
import traceback

TOP = os.path.abspath(
    os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
)
SCRIPT = os.path.join(TOP, "selftests/lib/rack.sh")
CLONE_NEWNET = 0x40000000

_libc = ctypes.CDLL(None, use_errno=True)


def rack(*words):
    """A verb of rack.sh; returns what it prints."""
    done = subprocess.run(
        [SCRIPT, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"rack.sh {words}: {done.stdout}")
    return done.stdout


def _setns(fd):
    if _libc.setns(fd, CLONE_NEWNET):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


@contextlib.contextmanager
def inside(host):
    """What is opened in this block belongs to that host's namespace."""
    with open("/proc/self/ns/net", "rb") as here:
        with open(f"/run/netns/atp-{host}", "rb") as there:
            _setns(there.fileno())
        try:
            yield
        finally:
            _setns(here.fileno())


def atp(host, *words):
    """The tool, on a host; returns its exit status and output."""
    with inside(host):
        done = subprocess.run(
            [os.path.join(TOP, "build/bin/atp"), *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    return done.returncode, done.stdout


@contextlib.contextmanager
def hole(host):
    """On the way to this host IPv4 packets from 128 bytes on are lost: data,
    but for a fragment of a few lanes, and not PING or PONG."""
    tc = f"tc -n atp-{host} -batch -"
    subprocess.run(tc.split(), check=True, text=True, input="""
        qdisc add dev eth0 ingress
        filter add dev eth0 ingress protocol ip prio 1 u32 match u16 0 0xff80 \
            at 2 action pass
        filter add dev eth0 ingress protocol ip prio 2 matchall action drop
    """)
    try:
        yield
    finally:
        subprocess.run(tc.split(), check=True, text=True,
                       input="qdisc del dev eth0 ingress")


def run(tests):
    """Each test is a function; its name, in words, is what it shows."""
    failed = 0
    wanted = sys.argv[1:]
    if wanted:
        tests = [t for t in tests if any(w in t.__name__ for w in wanted)]
    print("TAP version 13")
    print(f"1..{len(tests)}", flush=True)
    for number, test in enumerate(tests, 1):
        what = test.__name__.replace("_", " ")
        try:
            test()
            print(f"ok {number} {what}", flush=True)
        except Exception:  # whatever it is, the other tests go on
            failed += 1
            print(f"not ok {number} {what}")
            for line in traceback.format_exc().splitlines():
                print("#", line)
            sys.stdout.flush()
    return 1 if failed else 0
