#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The order of locks that Documentation/locking.rst states, against the one that
lockdep has seen: of sockets, of the PS, of jobs that come and go under both."""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../lib"))
from atptest import TOP, main, run, same, test  # noqa: E402
from kmod import load  # noqa: E402

# What takes all of the locks, in the ways there are
SEEN_BY = ("build/selftests/socket/test_run", "build/selftests/socket/test_server",
           "build/selftests/socket/test_shutdown", "selftests/socket/test_netlink.py")
# lockdep's names for the document's.  The family has a number that the kernel's
# tables call AF_ASH.
CLASSES = {
    "genl_mutex": "genl_mutex",
    "atp_net.lock": "&an->lock",
    "the socket's spinlock": "slock-AF_ASH",
    "atp_job.lock": "&job->lock",
    "atp_ps_host.lock": "&ps->lock",
}
OWNED, OWNED_UDP = "sk_lock-AF_ASH", "k-sk_lock-AF_INET"


def stated():
    """The document's order, outermost first; of the last two neither is inside
    the other."""
    with open(os.path.join(TOP, "Documentation/locking.rst"),
              encoding="utf-8") as f:
        text = re.search(r"^Order: (.*?);", f.read(), re.M | re.S)[1]
    *first, last = re.split(r",\s+", text)
    names = [*first, *re.match(r"then\s+(\S+) or (\S+)$", last).groups()]
    return [CLASSES[name.strip("`")] for name in names]


def seen():
    """What was taken directly inside of each class"""
    inside, outer = {}, None
    with open("/proc/lockdep", encoding="utf-8") as f:
        for line in f:
            if m := re.match(r"\S+ FD: *\d+ BD: *\d+ \S+: (.*)$", line):
                outer = inside.setdefault(m[1], set())
            elif m := re.match(r" -> \[\S+\] (.*)$", line):
                outer.add(m[1])
    return inside


def all_inside(lock):
    found, new = set(), {lock}
    while new:
        new = set().union(*(INSIDE.get(lock, ()) for lock in new)) - found
        found |= new
    return found


@test
def lockdep_looks():
    with open("/proc/lockdep_stats", encoding="utf-8") as f:
        same(re.search(r"debug_locks: +(\d)", f.read())[1], "1")


@test
def each_is_taken_in_the_one_before():
    """So that what is not seen below can be seen."""
    *first, a, b = stated()
    for outer, inner in (*zip(first, first[1:]), (first[-1], a), (first[-1], b)):
        same(inner in INSIDE[outer], True, f"{inner} inside of {outer}")


@test
def none_is_taken_in_a_later_one():
    order = stated()
    for n, outer in enumerate(order):
        for inner in order[:n]:
            same(inner in all_inside(outer), False, f"{inner} inside of {outer}")
    *_, a, b = order
    same(b in all_inside(a), False, f"{b} inside of {a}")


@test
def no_users_socket_is_waited_for():
    """lock_sock() is below neither mutex, but for UDP sockets."""
    same(CLASSES["the socket's spinlock"] in INSIDE[OWNED], True, OWNED)
    for mutex in ("genl_mutex", "atp_net.lock"):
        same(OWNED in all_inside(CLASSES[mutex]), False, f"inside of {mutex}")
        same(OWNED_UDP in all_inside(CLASSES[mutex]), True, mutex)


load()
for path in SEEN_BY:
    run(os.path.join(TOP, path))
INSIDE = seen()
main()
