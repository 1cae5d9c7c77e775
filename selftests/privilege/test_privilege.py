#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""What a user may do, see and take (atp(7), Permissions).

Joining is in ../socket/test_permission.c, requests that only CAP_NET_ADMIN may send
in ../socket/test_netlink.py.
"""
import array
import errno
import itertools
import os
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "../lib"))
# pylint: disable=wrong-import-position
from atptest import (ADD, ATP, DEL, FAMILY_GET, GET, JOB_ADDED, JOIN,
                     JOINED, J_COUNTERS, J_FRAGMENT, J_GID, J_ID, J_MEMORY,
                     J_PS, J_TIMEOUT, J_UID, J_WINDOW, PORT, SET, SOCK_GET,
                     SOL_ATP, Info, Netlink, Refused, address, attr, attrs,
                     join, libc, main, new_net, proc_protocols, pulled, pushed,
                     refused, run, same, sock, start_join, sum_works, test, u32, wait_for, worker)

ALICE, BOB, GROUP, OTHERS = 12345, 12346, 23456, 34567
NOBODY = 0xffffffff
ETH_P_ALL = 3
CLONE_NEWUSER, PR_SET_DUMPABLE = 0x10000000, 4
# the largest PS, about 28 MB
BIG = attr(J_WINDOW, 4096) + attr(J_FRAGMENT, 3400)
SMALL = attr(J_WINDOW, 4) + attr(J_FRAGMENT, 8)
ROOM = 32768    # of each PS, to write packets into


def child(function, *args):
    """What it does with credentials and namespaces is its own."""
    pid = os.fork()
    if not pid:
        code = 1
        try:
            function(*args)
            code = 0
        except BaseException as e:    # pylint: disable=broad-except
            print(f"# in the child: {e!r}")
        finally:
            sys.stdout.flush()
            os._exit(code)
    same(os.waitpid(pid, 0)[1], 0, "child")


def become(uid, gid=OTHERS, groups=()):
    os.setgroups(groups)
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    # or /proc/self stays root's
    libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)


def own_namespaces(net=True):
    """Root of a user namespace, as any user can make it"""
    uid, gid = os.getuid(), os.getgid()
    if libc.unshare(CLONE_NEWUSER):
        raise OSError("unshare")
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"),
                       ("gid_map", f"0 {gid} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as f:
            f.write(text)
    if net:
        new_net()


def told(number, text, nl, cmd, data=b""):
    try:
        nl.do(cmd, data)
    except Refused as e:
        same(errno.errorcode[e.errno], errno.errorcode[number])
        if text not in e.message:
            raise AssertionError(e.message) from e
        return
    raise AssertionError(f"not refused: {text}")


def ids(nl):
    return sorted(u32(dict(attrs(body))[J_ID]) for body in nl.dump(GET))


@test
def jobs_of_others_are_not_seen():
    new_net()
    nl = Netlink()
    nl.add(1, more=attr(J_UID, ALICE))
    nl.add(2, more=attr(J_GID, GROUP))
    nl.add(3)
    nl.add(4, more=attr(J_UID, 0))
    same(ids(nl), [1, 2, 3, 4])

    def look(seen, *who):
        become(*who)
        mine = Netlink()
        same(ids(mine), seen)
        for job in (1, 2, 3, 4):
            if job in seen:
                same(J_COUNTERS in mine.job(job), True)
            else:
                told(errno.EACCES, "may join", mine, GET, attr(J_ID, job))
        told(errno.ENOENT, "no job", mine, GET, attr(J_ID, 5))
    child(look, [1], ALICE)
    child(look, [2], BOB, GROUP)
    child(look, [2], BOB, OTHERS, [GROUP])
    child(look, [1, 2], ALICE, GROUP)
    child(look, [], BOB)


@test
def the_tool_shows_what_may_be_seen():
    new_net()
    nl = Netlink()
    nl.add(1, more=attr(J_UID, ALICE))
    nl.add(2)

    def look():
        become(ALICE)
        shown = run(ATP, "job", "show").stdout
        same((shown.count("job "), shown.startswith("job 1 ")), (1, True))
        done = run(ATP, "job", "show", "2", ok=False)
        same((done.returncode, "may join" in done.stderr), (2, True))
        done = run(ATP, "stats")
        same(("drop_" in done.stdout, "CAP_NET_ADMIN" in done.stderr),
             (False, True))
        done = run(ATP, "monitor", ok=False)
        same(done.returncode, 2)
        same(run(ATP, "stats", "job", "1").stdout.count("drop_job"), 1)
    child(look)


@test
def permission_is_taken_away():
    new_net()
    nl = Netlink()
    nl.add(1, workers=["127.0.0.2"], more=attr(J_UID, ALICE) +
           attr(J_GID, GROUP))

    def may(number, *who):
        become(*who)
        s = sock()
        s.setblocking(False)
        refused(number, s.setsockopt, SOL_ATP, JOIN,
                struct.pack("II", 1, 0))
    child(may, errno.EINPROGRESS, ALICE)
    child(may, errno.EINPROGRESS, BOB, GROUP)
    run(ATP, "job", "set", "1", "uid", "none")
    same([J_UID in nl.job(1), J_GID in nl.job(1)], [False, True])
    child(may, errno.EACCES, ALICE)
    child(may, errno.EINPROGRESS, BOB, GROUP)
    nl.do(SET, attr(J_ID, 1) + attr(J_GID, NOBODY))
    same([J_UID in nl.job(1), J_GID in nl.job(1)], [False, False])
    child(may, errno.EACCES, BOB, GROUP)


@test
def who_has_a_rank_keeps_it():
    """Permission is asked for when a socket takes its rank."""
    new_net()
    nl = Netlink()
    nl.add(1, workers=["127.0.0.2"], more=attr(J_UID, ALICE))
    here, there = socket.socketpair()

    def user():
        become(ALICE)
        s, = join(1, 1)
        there.send(b".")
        there.recv(1)
        # this run goes on, and the socket may join another one
        sum_works([s])
        s.shutdown(socket.SHUT_RDWR)
        start_join(s, 1, 0)
        wait_for(lambda: Info(s).state == JOINED, "joined")
        s.setblocking(True)
        sum_works([s])
        there.send(b".")
        there.recv(1)
        # the job is another one now
        same(s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), errno.EIDRM)
        s.setblocking(False)
        refused(errno.EACCES, s.setsockopt, SOL_ATP, JOIN,
                struct.pack("II", 1, 0))

    pid = os.fork()
    if not pid:
        here.close()
        child(user)
        os._exit(0)
    there.close()
    same(here.recv(1), b".")
    run(ATP, "job", "set", "1", "uid", "none")
    here.send(b".")
    same(here.recv(1), b".")
    nl.delete(1)
    nl.add(1, workers=["127.0.0.2"])
    here.send(b".")
    same(os.waitpid(pid, 0)[1], 0)


@test
def counters_of_all_jobs_are_the_operator_s():
    new_net()
    same(4 in dict(attrs(Netlink().do(FAMILY_GET)[0])), True)

    def look():
        become(ALICE)
        family = dict(attrs(Netlink().do(FAMILY_GET)[0]))
        same(sorted(family), [1, 2, 3])
    child(look)


@test
def sockets_of_others_are_not_seen():
    new_net()
    nl = Netlink()
    nl.add(1, workers=["127.0.0.2"] * 4, more=attr(J_GID, GROUP))
    ready, go = os.pipe(), os.pipe()
    pids = []
    for rank, uid in enumerate((ALICE, ALICE, BOB)):
        pids.append(os.fork())
        if not pids[-1]:
            os.close(go[1])
            become(uid, GROUP)
            s = sock()
            start_join(s, 1, rank)
            os.write(ready[1], b".")
            os.read(go[0], 1)
            os._exit(0)
    for _ in pids:
        same(os.read(ready[0], 1), b".")
    s = sock()
    start_join(s, 1, 3)

    def look(ranks, *who):
        if who:
            become(*who)
        same(sorted(u32(dict(attrs(b))[2]) for b in Netlink().dump(SOCK_GET)),
             ranks)
    child(look, [0, 1, 2, 3])
    child(look, [0, 1], ALICE)
    child(look, [2], BOB, GROUP)
    child(look, [], BOB + 1, GROUP)
    os.close(go[1])
    for pid in pids:
        same(os.waitpid(pid, 0)[1], 0)


@test
def everybody_reads_how_much_all_sockets_hold():
    new_net()
    _others = [sock() for _ in range(3)]
    nl = Netlink()
    nl.add(1)
    ranks = join(1, 2)
    same(proc_protocols()[0], 5)

    def elsewhere():
        new_net()
        _own = sock()
        become(ALICE)
        sockets, before = proc_protocols()
        same(sockets, 1)
        # more than CPUs keep to themselves
        for _ in range(3):
            ranks[0].send(bytes(1 << 20))
        same(proc_protocols()[1] > before, True, before)
    child(elsewhere)


@test
def events_are_the_operator_s():
    new_net()
    Netlink(groups=True)

    def listen():
        become(ALICE)
        refused(errno.EPERM, Netlink, True)
    child(listen)


@test
def a_lent_descriptor_shows_no_more():
    """Neither who opened it nor who uses it may see more than the other."""
    new_net()
    nl = Netlink()
    nl.add(1, more=attr(J_UID, ALICE))
    nl.add(2, more=attr(J_UID, BOB))
    s = sock()
    start_join(s, 2, 0)
    here, there = socket.socketpair()

    def lend():
        become(ALICE)
        mine = Netlink()
        socket.send_fds(there, [b"x"], [mine.s.fileno()])
    child(lend)
    fd = socket.recv_fds(here, 1, 1)[1][0]
    lent = Netlink()
    lent.s = socket.socket(fileno=fd)
    # opened by Alice, used by root
    lent.seq = 1000
    same(ids(lent), [1])
    told(errno.EACCES, "may join", lent, GET, attr(J_ID, 2))
    same(lent.dump(SOCK_GET), [])
    same(4 in dict(attrs(lent.do(FAMILY_GET)[0])), False)
    told(errno.EPERM, "", lent, DEL, attr(J_ID, 2))

    def use():
        become(ALICE)
        same(ids(nl), [1])
        told(errno.EACCES, "may join", nl, GET, attr(J_ID, 2))
        same(nl.dump(SOCK_GET), [])
        same(4 in dict(attrs(nl.do(FAMILY_GET)[0])), False)
        told(errno.EPERM, "", nl, DEL, attr(J_ID, 2))
    # opened by root, used by Alice
    child(use)


@test
def any_user_has_jobs_in_namespaces_of_his_own():
    new_net()
    Netlink().add(7)

    def user():
        become(ALICE)
        outside = Netlink()
        own_namespaces()
        nl, events = Netlink(), Netlink(groups=True)
        same(ids(nl), [])
        nl.add(7, more=attr(J_UID, 0))
        event = events.event()
        same((event[1], event[2]), (JOB_ADDED, 7))
        nl.do(SET, attr(J_ID, 7) + attr(J_TIMEOUT, 60000))
        socks = join(7)
        sum_works(socks)
        same(len(nl.dump(SOCK_GET)), 2)
        same(nl.counters()["chunks"], 2)
        # Bob is nobody here
        told(errno.EINVAL, "no such user", nl, SET, attr(J_ID, 7) +
             attr(J_UID, BOB))
        nl.delete(7)
        # root here is a user there
        same(ids(outside), [])
        told(errno.EACCES, "may join", outside, GET, attr(J_ID, 7))
        for cmd, more in ((SET, attr(J_TIMEOUT, 1000)), (DEL, b""),
                          (ADD, attr(J_PS, address("127.0.0.1")) +
                           worker("127.0.0.1"))):
            told(errno.EPERM, "", outside, cmd, attr(J_ID, 7) + more)
    child(user)
    same(ids(Netlink()), [7])


@test
def root_of_a_user_namespace_is_a_user_in_the_network():
    new_net()
    nl = Netlink()
    nl.add(1, more=attr(J_UID, ALICE))
    nl.add(2)

    def user():
        become(ALICE)
        own_namespaces(net=False)
        mine = Netlink()
        same(ids(mine), [1])
        # shown as the namespace calls her
        same(u32(mine.job(1)[J_UID]), 0)
        told(errno.EPERM, "", mine, SET, attr(J_ID, 1) + attr(J_UID, 0))
        told(errno.EPERM, "", mine, DEL, attr(J_ID, 1))
        refused(errno.EPERM, Netlink, True)
        s = sock()
        start_join(s, 1, 0)
        refused(errno.EACCES, sock().setsockopt, SOL_ATP, JOIN,
                (2).to_bytes(4, "little") + bytes(4))
        same(len(mine.dump(SOCK_GET)), 1)
    child(user)


def tap():
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                      socket.htons(ETH_P_ALL))
    s.setblocking(False)
    return s


def captured(s):
    frames = []
    while True:
        try:
            frames.append(s.recv(1 << 16))
        except BlockingIOError:
            return b"".join(frames)


def sum_of(*values):
    """Their own sums, and how they are on the wire"""
    socks = join(1)
    for s in socks:
        pushed(s, *values)
    for s in socks:
        same(pulled(s, len(values)), [2 * v for v in values])
    return array.array("i", values).tobytes()


@test
def tensors_of_others_are_not_seen():
    new_net()
    Netlink().add(1)
    here, there = socket.socketpair()

    def sees_nothing():
        refused(errno.EPERM, tap)
        for family, kind in ((socket.AF_PACKET, socket.SOCK_DGRAM),
                             (socket.AF_INET, socket.SOCK_RAW),
                             (socket.AF_INET6, socket.SOCK_RAW)):
            refused(errno.EPERM, socket.socket, family, kind,
                    socket.IPPROTO_UDP)
        for name in ("trace", "trace_pipe", "events/atp/enable"):
            refused(errno.EACCES, open, f"/sys/kernel/tracing/{name}", "rb")

    def user():
        become(ALICE)
        sees_nothing()
        own_namespaces(net=False)
        sees_nothing()
        new_net()
        mine = tap()
        socket.send_fds(there, [b"x"], [mine.fileno()])
        Netlink().add(1)
        there.send(sum_of(*range(4000, 4100)))
    child(user)
    fds = socket.recv_fds(here, 1, 1)[1]
    mine, theirs = tap(), socket.socket(fileno=fds[0])
    theirs.setblocking(False)
    host, own = sum_of(*range(7000, 7100)), here.recv(1000)
    frames = captured(mine), captured(theirs)
    same([[values in seen for seen in frames] for values in (host, own)],
         [[True, False], [False, True]])


def fill(nl, kind=BIG, first=1000):
    """PS until there is no more memory; how many, and what was said"""
    for n in range(1000):
        try:
            nl.add(first + n, more=kind)
        except Refused as e:
            same(e.errno, errno.ENOSPC)
            return n, e.message
    raise AssertionError("no limit")


@test
def what_small_jobs_write_packets_into_counts():
    new_net()
    nl = Netlink()
    share = os.sysconf("SC_PHYS_PAGES") // 8 * 4096
    same(fill(nl)[1].endswith("namespace is used up"), True)
    big = u32(nl.job(1000)[J_MEMORY]) + ROOM
    nl.add(1, more=SMALL)
    small = u32(nl.job(1)[J_MEMORY]) + ROOM
    nl.delete(1)
    same(fill(nl, SMALL, 2000)[0], share % big // small)


@test
def users_leave_memory_to_the_host():
    new_net()
    nl = Netlink()
    nl.add(1, more=BIG)
    pages = os.sysconf("SC_PHYS_PAGES")
    share = pages // 8 * 4096 // (u32(nl.job(1)[J_MEMORY]) + ROOM)
    full, go, count = os.pipe(), os.pipe(), os.pipe()

    def user():
        become(ALICE)
        own_namespaces()
        mine = Netlink()
        n, text = fill(mine)
        same((n, "namespace" in text), (share, True))
        # the share is that of all users, so there is nothing in a second one
        new_net()
        other = Netlink()
        n, text = fill(other)
        same((n, "host" in text), (0, True))
        os.write(full[1], b".")
        os.read(go[0], 1)
        mine.delete(1000)
        same(fill(other)[0], 1)

    def once_more():
        become(BOB)
        own_namespaces()
        os.write(count[1], bytes([fill(Netlink())[0]]))

    pid = os.fork()
    if not pid:
        child(user)
        os._exit(0)
    # what is not written any more is read as nothing
    os.close(full[1])
    same(os.read(full[0], 1), b".")
    # who owns the host has what the users have left
    nl.add(2, more=BIG)
    os.write(go[1], b".")
    same(os.waitpid(pid, 0)[1], 0)

    # All is given back when the namespaces are gone.  Each attempt takes some
    # that is given back later, too, so the next leaves more time for that.
    pauses = itertools.count()

    def given_back():
        time.sleep(next(pauses))
        child(once_more)
        return os.read(count[0], 1)[0] == share
    wait_for(given_back, "given back")


@test
def something_is_left_to_the_host():
    """Namespaces of root, too, have no more than a quarter of its memory."""
    new_net()
    nl = Netlink()
    nl.add(1, more=BIG)
    unit = u32(nl.job(1)[J_MEMORY]) + ROOM
    nl.delete(1)
    pages = os.sysconf("SC_PHYS_PAGES")
    share, most = (pages // part * 4096 // unit for part in (8, 4))

    def as_many_as_due():
        found = []
        for _ in range(3):
            new_net()
            mine = Netlink()
            found.append((mine, *fill(mine)))
        for mine, n, _ in found:
            for job in range(n):
                mine.delete(1000 + job)
        # other tests' namespaces may not have gone yet, and count
        same(sum(n for _, n, _ in found) <= most, True)
        return [(n, "host" in text) for _, n, text in found] == [
            (share, False), (share, False), (most - 2 * share, True)]
    wait_for(as_many_as_due, "a quarter of the memory")


@test
def the_limits_are_the_host_s():
    """For whoever has a network of his own there are none to see or to set."""
    sock()    # loads the module
    limits = "/proc/sys/net/atp"
    names = ["mem", "rmem", "wmem"]
    same(sorted(os.listdir(limits)), names)

    def may_not_set():
        for name in names:
            refused(errno.EACCES, open, f"{limits}/{name}", "w")
            with open(f"{limits}/{name}", encoding="ascii") as f:
                same(f.read().split() != [], True)

    def user():
        become(ALICE)
        may_not_set()
        own_namespaces(net=False)
        may_not_set()
        new_net()
        # what is there for it is there
        same("ipv4" in os.listdir("/proc/sys/net"), True)
        same("atp" in os.listdir("/proc/sys/net"), False)
        for name in names:
            refused(errno.ENOENT, open, f"{limits}/{name}", "rb")
    child(user)

    # root's own networks have none, either
    new_net()
    refused(errno.ENOENT, os.listdir, limits)


@test
def the_port_belongs_to_who_was_first():
    """A user's socket cannot stand in the place of the kernel's."""
    new_net()
    nl = Netlink()

    def take(address_, *options):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for option in options:
            s.setsockopt(socket.SOL_SOCKET, option, 1)
        s.bind((address_, PORT))
        return s

    def user():
        become(ALICE)
        for where in ("", "127.0.0.1", "127.0.0.9"):
            for options in ((), (socket.SO_REUSEADDR,),
                            (socket.SO_REUSEPORT,)):
                refused(errno.EADDRINUSE, take, where, *options)
    nl.add(1)
    child(user)
    nl.delete(1)
    with take("127.0.0.1", socket.SO_REUSEADDR, socket.SO_REUSEPORT):
        told(errno.EADDRINUSE, "UDP port", nl, ADD, attr(J_ID, 1) +
             attr(J_PS, address("127.0.0.1")) + worker("127.0.0.2"))
    nl.add(1)


main()
