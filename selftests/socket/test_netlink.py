#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Generic netlink: what is refused says why, dumps are complete, events come."""
import errno
import os
import select
import socket
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../lib"))
from atptest import (  # noqa: E402
    ADD, ATP, DEL, EV_ENDED, EV_FAILED, EV_JOINED, EV_STALLED, E_EPOCH, E_JOB,
    E_RANK, E_RANKS, E_REASON, E_SEQ, E_TYPE, FAILED, FAMILY_GET, GET,
    JOB_ADDED, JOB_CHANGED, JOB_DELETED, J_COUNTERS, J_EPOCH, J_FRAGMENT,
    J_FRONTIER, J_GID, J_ID, J_JOINED, J_MEMORY, J_PS, J_ROLE, J_RUNNING,
    J_SCALE, J_SERVER, J_SERVER_JOINED, J_SOCKETS, J_STALL, J_TIMEOUT, J_UID,
    J_WAITING, J_WINDOW, J_WORKER, PORT, SET, SOCK_GET, Info, Netlink, Refused,
    address, attr, attrs, join, main, new_net, pulled, pushed, run, same, sock,
    start_join, sum_works, test, u32, udp, wait_for, worker,
)

JOB = 7


def net():
    new_net()
    return Netlink()


def told(number, words, nl, cmd, data):
    """Refused with this errno and with a message that has these words."""
    try:
        nl.do(cmd, data)
    except Refused as e:
        numbers = (number,) if isinstance(number, int) else number
        same(e.errno in numbers, True, e)
        if not e.message or words not in e.message:
            raise AssertionError(f"{e.message!r} lacks {words!r}") from e
        return e
    raise AssertionError(f"not refused: {words}")


PS = attr(J_PS, address("127.0.0.1"))
W = worker("127.0.0.2")


@test
def add_is_refused_with_a_reason():
    nl = net()
    i = attr(J_ID, JOB)
    inval = errno.EINVAL
    told(inval, "no job ID", nl, ADD, PS + W)
    told(inval, "PS", nl, ADD, i + W)
    told(inval, "no worker", nl, ADD, i + PS)
    told(errno.E2BIG, "32", nl, ADD, i + PS + W * 33)
    told(inval, "address", nl, ADD, i + PS + attr(J_WORKER | 0x8000, b""))
    for a in ("0.0.0.0", "224.0.0.1", "255.255.255.255", "::", "ff02::1",
              "fe80::1"):
        told(inval, "not an address", nl, ADD, i + attr(J_PS, address(a)) + W)
        told(inval, "not an address", nl, ADD, i + PS + worker(a))
    told(inval, "mix", nl, ADD, i + PS + worker("::1"))
    told(inval, "mix", nl, ADD, i + attr(J_PS, address("::1")) + W)
    told(inval, "8 bytes", nl, ADD, i + PS + W + attr(J_FRAGMENT, 12))
    told(inval, "power of two", nl, ADD, i + PS + W + attr(J_WINDOW, 5))
    erange = errno.ERANGE
    for kind, values in ((J_FRAGMENT, (0, 7, 3401, 1 << 31)),
                         (J_WINDOW, (0, 3, 4097, 8192)), (J_SCALE, (0,)),
                         (J_TIMEOUT, (0, 99, 3600001, 0xffffffff))):
        for value in values:
            e = told(erange, "", nl, ADD, i + PS + W + attr(kind, value))
            if not e.offset:
                raise AssertionError(f"{kind} {value}: no attribute named")
    for kind in (J_ID, J_FRAGMENT, J_WINDOW, J_SCALE, J_TIMEOUT, J_UID, J_GID):
        told((inval, erange), "", nl, ADD, i + PS + W + attr(kind, b"ab"))
    # kernels differ about the number
    told((inval, erange), "", nl, ADD, i + attr(J_PS, bytes(4)) + W)
    told((inval, erange), "", nl, ADD,
         i + PS + attr(J_WORKER | 0x8000, attr(1, bytes(4))))
    told(erange, "", nl, ADD, i + PS + W + attr(J_SERVER, b"\2"))
    for kind in (J_ROLE, J_EPOCH, J_MEMORY, J_SERVER_JOINED, 99):
        told(inval, "", nl, ADD, i + PS + W + attr(kind, 1))
    told(errno.EADDRNOTAVAIL, "local", nl, ADD,
         i + attr(J_PS, address("192.0.2.1")) + worker("192.0.2.2"))
    same(nl.dump(GET), [])
    nl.add(JOB)
    told(errno.EEXIST, "exists", nl, ADD, i + PS + W)
    same(len(nl.dump(GET)), 1)


@test
def the_rest_is_refused_with_a_reason():
    nl = net()
    nl.add(JOB)
    for cmd in (SET, DEL, GET):
        told(errno.EINVAL, "no job ID", nl, cmd, b"")
        told(errno.ENOENT, "no job with this ID", nl, cmd, attr(J_ID, 8))
        told((errno.EINVAL, errno.ERANGE), "", nl, cmd, attr(J_ID, b"a"))
    i = attr(J_ID, JOB)
    for value in (0, 99, 3600001):
        told(errno.ERANGE, "", nl, SET, i + attr(J_TIMEOUT, value))
    # what is fixed cannot be set
    for more in (PS, W, attr(J_FRAGMENT, 64), attr(J_WINDOW, 4),
                 attr(J_SCALE, 1), attr(J_SERVER, b"\1")):
        told(errno.EINVAL, "", nl, SET, i + more)
    for cmd in (99, 200):
        try:
            nl.do(cmd)
            raise AssertionError(f"command {cmd}")
        except Refused as e:
            same(e.errno, errno.EOPNOTSUPP)


@test
def the_tool_shows_the_reason():
    nl = net()
    nl.add(JOB)
    for words, text in ((("add", "7", "ps", "127.0.0.1", "worker", "127.0.0.2"),
                         "exists"), (("del", "8"), "no job"),
                        (("set", "8", "timeout", "1s"), "no job"),
                        (("add", "8", "ps", "192.0.2.1", "worker", "192.0.2.2"),
                         "local")):
        done = run(ATP, "job", *words, ok=False)
        same(done.returncode, 2)
        if text not in done.stderr:
            raise AssertionError(done.stderr)


@test
def only_capable_users_change():
    nl = net()
    nl.add(JOB)
    os.setresgid(12345, 12345, 12345)
    os.setresuid(12345, 12345, 12345)
    nl = Netlink()
    i = attr(J_ID, JOB)
    for cmd, more in ((ADD, PS + W), (SET, attr(J_TIMEOUT, 1000)), (DEL, b"")):
        try:
            nl.do(cmd, i + more)
            raise AssertionError(f"command {cmd}")
        except Refused as e:
            same(e.errno, errno.EPERM)
    # who may see what is in ../privilege
    same(len(nl.do(FAMILY_GET)), 1)


@test
def defaults_and_values():
    nl = net()
    nl.add(0)
    j = nl.job(0)
    same([u32(j[k]) for k in (J_ID, J_FRAGMENT, J_WINDOW, J_SCALE, J_TIMEOUT,
                              J_ROLE, J_SOCKETS, J_JOINED, J_FRONTIER, J_WAITING,
                              J_STALL)],
         [0, 1400, 256, 100000000, 10000, 3, 0, 0, 0, 0, 0])
    same([j[k] for k in (J_RUNNING, J_SERVER, J_SERVER_JOINED)], [b"\0"] * 3)
    same(J_UID in j or J_GID in j, False)
    same(j[J_PS], address("127.0.0.1"))
    nl.add(0xffffffff, ps="::1", workers=["::1"], more=attr(J_FRAGMENT, 8) +
           attr(J_WINDOW, 4) + attr(J_SCALE, 1) + attr(J_TIMEOUT, 100) +
           attr(J_UID, 5) + attr(J_GID, 6))
    j = nl.job(0xffffffff)
    same([u32(j[k]) for k in (J_ID, J_FRAGMENT, J_WINDOW, J_SCALE, J_TIMEOUT,
                              J_UID, J_GID)],
         [0xffffffff, 8, 4, 1, 100, 5, 6])
    nl.add(1, more=attr(J_FRAGMENT, 3400) + attr(J_WINDOW, 4096) +
           attr(J_SCALE, 0xffffffff) + attr(J_TIMEOUT, 3600000) +
           attr(J_SERVER, b"\1"))
    j = nl.job(1)
    same(j[J_SERVER], b"\1")
    same([u32(j[k]) for k in (J_FRAGMENT, J_WINDOW, J_SCALE, J_TIMEOUT)],
         [3400, 4096, 0xffffffff, 3600000])


@test
def roles_follow_from_addresses():
    nl = net()
    nl.add(1, workers=["192.0.2.1"])
    nl.add(2, ps="192.0.2.1")
    nl.add(3)
    same([u32(nl.job(i)[J_ROLE]) for i in (1, 2, 3)], [2, 1, 3])
    same(J_EPOCH in nl.job(2) or J_MEMORY in nl.job(2), False)
    same(u32(nl.job(1)[J_MEMORY]) > 256 * 1400, True)


@test
def set_changes_what_it_names():
    nl = net()
    nl.add(JOB, more=attr(J_UID, 5))
    before = nl.job(JOB)
    nl.do(SET, attr(J_ID, JOB) + attr(J_TIMEOUT, 123))
    after = nl.job(JOB)
    same(u32(after[J_TIMEOUT]), 123)
    same({k for k in after if after[k] != before[k]}, {J_TIMEOUT})
    nl.do(SET, attr(J_ID, JOB) + attr(J_GID, 9) + attr(J_UID, 8))
    after = nl.job(JOB)
    same([u32(after[k]) for k in (J_UID, J_GID, J_TIMEOUT)], [8, 9, 123])
    nl.do(SET, attr(J_ID, JOB))
    same(nl.job(JOB), after)
    # nothing is half done
    try:
        nl.do(SET, attr(J_ID, JOB) + attr(J_UID, 1) + attr(J_TIMEOUT, 99))
    except Refused:
        pass
    same(nl.job(JOB), after)
    # nobody's
    nl.do(SET, attr(J_ID, JOB) + attr(J_UID, 0xffffffff))
    after.pop(J_UID)
    same(nl.job(JOB), after)


def long_list(n):
    return [f"127.{k}.1.2" for k in range(n)]


@test
def dump_is_complete():
    nl = net()
    ids = [k * 0x01000193 & 0xffffffff for k in range(64)]
    for k in ids:
        nl.add(k, workers=long_list(32), more=attr(J_WINDOW, 4))
    seen = {}
    for body in nl.dump(GET):
        parts = attrs(body)
        j = dict(parts)
        same([v[4:] for k, v in parts if k == J_WORKER],
             [address(a) for a in long_list(32)])
        same(u32(j[J_ID]) in seen, False)
        seen[u32(j[J_ID])] = j
        same(len(attrs(j[J_COUNTERS])) >= 50, True)
    same(sorted(seen), sorted(ids))
    for k in ids[::2]:
        nl.delete(k)
    same(sorted(u32(dict(attrs(b))[J_ID]) for b in nl.dump(GET)),
         sorted(ids[1::2]))


@test
def dump_while_jobs_come_and_go():
    nl, other = net(), Netlink()
    for k in range(32):
        nl.add(k, more=attr(J_WINDOW, 4))
    for k in range(200):
        other.add(1000 + k, more=attr(J_WINDOW, 4))
        seen = [u32(dict(attrs(b))[J_ID]) for b in nl.dump(GET)]
        same(set(range(32)) <= set(seen), True)
        other.delete(1000 + k)


@test
def too_many_jobs():
    nl = net()
    for k in range(1024):
        nl.add(k, ps="192.0.2.1", workers=["127.0.0.2"], more=attr(J_WINDOW, 4))
    told(errno.ENOSPC, "too many", nl, ADD, attr(J_ID, 5000) + PS + W)
    same(len(nl.dump(GET)), 1024)
    nl.delete(1)
    nl.add(5000, more=attr(J_WINDOW, 4))


@test
def sockets_are_dumped():
    nl = net()
    nl.add(JOB, workers=["127.0.0.2"] * 4)
    nl.add(8)
    socks = join(JOB, 4)
    bound = sock()
    start_join(bound, 8, 1)
    pushed(socks[0], *range(1000))
    found = {}
    for body in nl.dump(SOCK_GET):
        s = dict(attrs(body))
        found[u32(s[1]), u32(s[2])] = s
    same(sorted(found), [(7, 0), (7, 1), (7, 2), (7, 3), (8, 1)])
    s = found[7, 0]
    same(len(s[3]), 136)
    same(struct.unpack_from("I", s[3])[0], 3)
    same(u32(s[4]), os.getuid())
    same(u32(s[5]), os.fstat(socks[0].fileno()).st_ino)
    same(u32(s[6]), 0)
    same(4000 <= u32(s[7]) < 4500, True)
    for x in socks[1:]:
        pushed(x, *range(1000))
    for x in socks[1:]:
        pulled(x, 1000)
    wait_for(lambda: {u32(dict(attrs(b))[6]) for b in nl.dump(SOCK_GET)} ==
             {0, 4000}, "results wait")
    same(u32(nl.job(JOB)[J_SOCKETS]), 4)
    same(u32(nl.job(8)[J_SOCKETS]), 1)
    for x in socks:
        x.close()
    bound.close()
    same(nl.dump(SOCK_GET), [])
    same(u32(nl.job(JOB)[J_SOCKETS]), 0)


@test
def many_sockets_are_dumped():
    nl = net()
    kept = []
    for k in range(12):
        nl.add(k, workers=["127.0.0.2"] * 32, more=attr(J_WINDOW, 4))
        for rank in range(32):
            s = sock()
            start_join(s, k, rank)
            kept.append(s)
    same(sorted((u32(s[1]), u32(s[2])) for s in
                (dict(attrs(b)) for b in nl.dump(SOCK_GET))),
         [(k, rank) for k in range(12) for rank in range(32)])


@test
def family():
    nl = net()
    f = dict(attrs(nl.do(FAMILY_GET)[0]))
    same(u32(f[1]), 18)
    same(struct.unpack("H", f[2])[0], PORT)
    same(u32(f[3]), 1)
    same(set(nl.counters().values()), {0})


@test
def counters_add_up():
    nl = net()
    nl.add(JOB, more=attr(J_FRAGMENT, 400))
    nl.add(8)
    socks = join(JOB)
    for _ in range(10):
        sum_works(socks)      # 10 fragments each
    c = nl.counters(JOB)
    same([c[k] for k in ("sent", "chunks", "completed", "ps_fragments",
                         "switch_fragments", "runs", "aborts", "raw",
                         "worker_raw", "out_errors", "out_nomem",
                         "out_multicast", "ecn", "collisions")],
         [200, 20, 100, 100, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0])
    same(c["in_packets"] >= c["sent"] + c["resent"], True)
    same(sum(v for k, v in c.items() if k.startswith("drop_") and
             k not in ("drop_duplicate", "drop_old", "drop_unsent")), 0)
    same(set(nl.counters(8).values()), {0})
    ns = nl.counters()
    for k in ("sent", "chunks", "completed", "runs"):
        same(ns[k], c[k], k)
    for s in socks:
        s.close()
    nl.delete(JOB)
    # those of the namespace outlive the job, those of a new job are its own
    same(nl.counters()["sent"], 200)
    nl.add(JOB)
    same(set(nl.counters(JOB).values()), {0})


@test
def the_port_is_open_while_there_are_jobs():
    nl = net()
    for family_, here in ((socket.AF_INET, "127.0.0.1"),
                          (socket.AF_INET6, "::1")):
        with socket.socket(family_, socket.SOCK_DGRAM) as s:
            s.bind((here, PORT))
            e = told(errno.EADDRINUSE, "UDP port", nl, ADD,
                     attr(J_ID, JOB) + PS + W)
            same(e.errno, errno.EADDRINUSE)
        nl.add(JOB)
        with socket.socket(family_, socket.SOCK_DGRAM) as s:
            try:
                s.bind((here, PORT))
                raise AssertionError("the port is free")
            except OSError as e:
                same(e.errno, errno.EADDRINUSE)
        nl.delete(JOB)


def expect(ev, **fields):
    names = {"type": E_TYPE, "job": E_JOB, "epoch": E_EPOCH, "reason": E_REASON,
             "ranks": E_RANKS, "seq": E_SEQ, "rank": E_RANK}
    for k, v in fields.items():
        same(ev and ev.get(names[k]), v, f"{k} of {ev}")


@test
def events():
    nl = net()
    ev = Netlink(groups=True)
    nl.add(JOB)
    expect(ev.event(), type=JOB_ADDED, job=JOB, rank=None)
    nl.do(SET, attr(J_ID, JOB) + attr(J_TIMEOUT, 60000))
    expect(ev.event(), type=JOB_CHANGED, job=JOB)
    socks = join(JOB)
    e = Info(socks[0]).epoch
    expect(ev.event(), type=EV_JOINED, job=JOB, epoch=e, reason=0, ranks=3)
    sum_works(socks)
    for s in socks:
        s.close()
    expect(ev.event(), type=EV_ENDED, job=JOB, epoch=e, reason=0, ranks=0)
    # a failure: the PS says that the run ended, each socket that it failed
    socks = join(JOB)
    expect(ev.event(), type=EV_JOINED, epoch=(e + 1) & 0xffffffff)
    sum_works(socks)
    pushed(socks[0], 1)
    socks[1].close()
    got = sorted((ev.event() for _ in range(2)), key=lambda x: x[E_TYPE])
    seq = Info(socks[0]).una
    expect(got[0], type=EV_ENDED, reason=1, ranks=2, seq=seq)
    expect(got[1], type=EV_FAILED, reason=1, ranks=2, rank=0, seq=seq)
    same(nl.counters(JOB)["aborts"], 1)
    nl.delete(JOB)
    expect(ev.event(), type=JOB_DELETED, job=JOB)
    same(ev.event(0), None)
    # no change, no event
    for cmd in (SET, DEL):
        try:
            nl.do(cmd, attr(J_ID, JOB))
        except Refused:
            pass
    same(ev.event(0), None)


@test
def events_of_a_deleted_run():
    nl = net()
    ev = Netlink(groups=True)
    nl.add(JOB)
    join_ = join(JOB)
    nl.delete(JOB)
    got = [ev.event()[E_TYPE] for _ in range(6)]
    same(got, [JOB_ADDED, EV_JOINED, EV_ENDED, EV_FAILED, EV_FAILED,
               JOB_DELETED])
    same(len(join_), 2)


@test
def events_stay_in_their_namespace():
    ev = net()
    ev = Netlink(groups=True)
    pid = os.fork()
    if not pid:
        net().add(JOB)
        os._exit(0)
    same(os.waitpid(pid, 0)[1], 0)
    nl = Netlink()
    nl.add(8)
    expect(ev.event(), type=JOB_ADDED, job=8)
    same(ev.event(0), None)


@test
def stall():
    nl = net()
    nl.add(JOB, workers=["127.0.0.2"] * 3, more=attr(J_TIMEOUT, 1000))
    socks = join(JOB, 3)
    sum_works(socks)
    seq = Info(socks[0]).una
    ev = Netlink(groups=True)
    pushed(socks[0], 1)
    pushed(socks[2], 1)
    expect(ev.event(), type=EV_STALLED, job=JOB, seq=seq, ranks=2, reason=0,
           epoch=Info(socks[0]).epoch)
    j = nl.job(JOB)
    same([u32(j[J_FRONTIER]), u32(j[J_WAITING])], [seq, 2])
    same(u32(j[J_STALL]) >= 500, True)
    pushed(socks[1], 1)
    for s in socks:
        same(pulled(s, 1), [3])
    # once per fragment, and again for the next
    pushed(socks[1], 1)
    expect(ev.event(), type=EV_STALLED, seq=seq + 1, ranks=5)


@test
def stall_of_each_run():
    """The first fragment of the second run stalls as that of the first."""
    nl = net()
    nl.add(JOB, more=attr(J_TIMEOUT, 1000))
    for _ in range(2):
        socks = join(JOB)
        ev = Netlink(groups=True)
        pushed(socks[0], 1)
        expect(ev.event(), type=EV_STALLED, seq=0, ranks=2)
        pushed(socks[1], 1)
        for s in socks:
            pulled(s, 1)
            s.close()


@test
def monitor():
    net_ = net()
    with subprocess.Popen([ATP, "-j", "monitor"],
                          stdout=subprocess.PIPE) as m:
        out, text = m.stdout.fileno(), b""

        def heard(word, poke=False):
            nonlocal text
            if poke:
                net_.do(SET, attr(J_ID, 1) + attr(J_TIMEOUT, 60000))
            if select.select([out], [], [], 0)[0]:
                text += os.read(out, 65536)
            return word in text
        # until it has subscribed it hears nothing
        net_.add(1)
        wait_for(lambda: heard(b"changed", True), "monitor")
        net_.add(JOB)
        socks = join(JOB)
        pushed(socks[0], 1)
        socks[1].close()
        wait_for(lambda: Info(socks[0]).state == FAILED, "failed")
        net_.delete(JOB)
        wait_for(lambda: heard(b"deleted"), "deleted")
        m.kill()
    text = text.decode()
    for word in ("added", "joined", "ended", "failed", "deleted"):
        same(word in text, True, word)


@test
def what_has_no_job_counts_for_none():
    nl = net()
    nl.add(JOB)
    before = nl.counters(JOB)["in_packets"]
    udp("127.0.0.2", b"x" * 20)
    wait_for(lambda: nl.counters()["drop_short"] == 1, "dropped")
    same(nl.counters(JOB)["in_packets"], before)


main()
