#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""The module as a whole: loading, unloading, namespaces, memory, tracing."""
import array
import errno
import os
import signal
import socket
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../lib"))
from atptest import (  # noqa: E402
    AF_ATP, ATP, ECN, FLOAT32, GET, JOIN, JOINED, J_EPOCH, J_FRAGMENT, J_ID,
    J_JOINED, J_MEMORY, J_TIMEOUT, J_WINDOW, LAST, SET, SOCK_GET, SOL_ATP, TOP,
    Info, Netlink, Tickets, attr, data, join, main, new_net,
    proc_protocols, pulled, pushed, refused, run, same, sock, start_join,
    sum_works, test, u32, udp, wait_for,
)

JOB = 7
TRACE = "/sys/kernel/tracing/"
PAGES_PER_CPU = 256        # that a CPU keeps back before it is seen


def loaded():
    return os.path.isdir("/sys/module/atp")


def unload():
    run("rmmod", "atp", ok=False)
    wait_for(lambda: not loaded(), "unloaded")


@test
def loaded_by_socket():
    unload()
    s = socket.socket(AF_ATP, socket.SOCK_SEQPACKET, 0)
    same(loaded(), True)
    s.close()


@test
def loaded_by_an_unprivileged_socket():
    unload()
    pid = os.fork()
    if not pid:
        os.setresuid(12345, 12345, 12345)
        socket.socket(AF_ATP, socket.SOCK_SEQPACKET, 0)
        os._exit(0)
    same(os.waitpid(pid, 0)[1], 0)
    same(loaded(), True)


@test
def loaded_by_the_tool():
    unload()
    run(ATP, "job", "show")
    same(loaded(), True)


@test
def plain_python():
    """The example of atp(7), as it stands there"""
    new_net()
    nl = Netlink()
    nl.add(JOB, workers=["127.0.0.2"] * 3)
    others = [sock(FLOAT32) for _ in range(2)]
    for rank, s in enumerate(others):
        start_join(s, JOB, rank)
        s.setblocking(True)
    with open(os.path.join(TOP, "Documentation/man/atp.7"),
              encoding="ascii") as f:
        lines = f.read().splitlines()
    at = lines.index("import array, socket, struct")
    code = "\n".join(lines[at:at + 6])
    pid = os.fork()
    if not pid:
        for s in others:
            s.close()
        scope = {}
        exec(code, scope)    # pylint: disable=exec-used
        os._exit(list(scope["total"]) != [3.0, 6.0, 9.0])
    for s in others:
        wait_for(lambda s=s: Info(s).state == JOINED, "joined")
        s.send(array.array("f", [1.0, 2.0, 3.0]).tobytes())
    for s in others:
        same(list(array.array("f", s.recv(12))), [3.0, 6.0, 9.0])
    same(os.waitpid(pid, 0)[1], 0)


@test
def unload_is_refused_while_a_socket_is_open():
    s = sock()
    done = run("rmmod", "atp", ok=False)
    same(done.returncode != 0 and loaded(), True)
    # not harmed by the attempt
    same(Info(s).state, 0)
    s.close()
    wait_for(lambda: not run("rmmod", "atp", ok=False).returncode, "unloaded")
    same(loaded(), False)


@test
def unload_is_refused_while_a_run_goes_on():
    new_net()
    nl = Netlink()
    nl.add(JOB)
    socks = join(JOB)
    same(run("rmmod", "atp", ok=False).returncode != 0, True)
    sum_works(socks)


@test
def unload_with_jobs():
    """Jobs and the PS's run of remote workers end with the module."""
    new_net()
    nl = Netlink()
    for k in range(20):
        nl.add(k)
    # two workers without sockets: the PS has a run, the module no user
    tickets = Tickets("127.0.0.2", 5)
    for rank in range(2):
        tickets.join(rank + 1, bitmap=1 << rank)
    wait_for(lambda: nl.counters(5)["runs"] == 1, "run")
    epoch = u32(nl.job(5)[J_EPOCH])
    udp("127.0.0.2", data(5, [1, 2], epoch=epoch, flags=LAST))
    with subprocess.Popen([ATP, "monitor"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as m:
        wait_for(lambda: not run("rmmod", "atp", ok=False).returncode, "unload")
        same(loaded(), False)
        m.kill()
    # the port is free, and nothing is remembered
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("", 4797))
    run("modprobe", "atp")
    nl = Netlink()
    same(nl.dump(GET), [])
    nl.add(5)
    sum_works(join(5))


@test
def loaded_and_unloaded_many_times():
    new_net()
    for _ in range(10):
        run("modprobe", "atp")
        nl = Netlink()
        nl.add(JOB)
        socks = join(JOB)
        sum_works(socks)
        for s in socks:
            s.close()
        wait_for(lambda: not run("rmmod", "atp", ok=False).returncode, "unload")


def in_net(f):
    """In a child with a namespace of its own, which stays until the pipe that is
    returned is closed."""
    up, hold = os.pipe(), os.pipe()
    pid = os.fork()
    if not pid:
        code = 1
        try:
            os.close(hold[1])
            new_net()
            kept = f()
            os.write(up[1], b"x")
            os.read(hold[0], 1)
            code = 0
            del kept
        finally:
            os._exit(code)
    os.close(up[1])
    os.close(hold[0])
    same(os.read(up[0], 1), b"x")
    return pid, hold[1]


@test
def namespaces_do_not_meet():
    """Rank 0 of job 7 here, rank 1 of job 7 there"""
    new_net()
    nl = Netlink()
    nl.add(JOB)
    s = sock()
    start_join(s, JOB, 0)
    wait_for(lambda: nl.counters(JOB)["in_packets"] >= 2, "PS answers")

    def there():
        other = Netlink()
        same(other.dump(GET), [])
        refused(errno.ENOENT, start_refused, JOB)
        other.add(JOB)
        x = sock()
        start_join(x, JOB, 1)
        wait_for(lambda: other.counters(JOB)["in_packets"] >= 2, "PS answers")
        same(Info(x).state, 2)
        same(u32(other.job(JOB)[J_JOINED]), 2)
        other.do(SET, attr(J_ID, JOB) + attr(J_TIMEOUT, 50000))
        other.add(8)
        return x

    pid, end = in_net(there)
    same(Info(s).state, 2)
    same([u32(nl.job(JOB)[k]) for k in (J_JOINED, J_TIMEOUT)], [1, 10000])
    same(len(nl.dump(GET)), 1)
    same(len(nl.dump(SOCK_GET)), 1)
    os.close(end)
    same(os.waitpid(pid, 0)[1], 0)
    other = sock()
    start_join(other, JOB, 1)
    for x in (s, other):
        wait_for(lambda x=x: Info(x).state == JOINED, "joined")
        x.setblocking(True)
    sum_works([s, other])


def start_refused(job):
    sock().setsockopt(SOL_ATP, JOIN, struct.pack("II", job, 0))


@test
def namespace_ends_with_jobs_in_it():
    before = slab_users()

    def there():
        nl = Netlink()
        for k in range(50):
            nl.add(k)
        socks = join(3)
        sum_works(socks)
        pushed(socks[0], *range(10000))
        return nl, socks

    for _ in range(3):
        pid, end = in_net(there)
        os.close(end)
        same(os.waitpid(pid, 0)[1], 0)
    # namespaces end in the background; afterwards nothing holds the module
    wait_for(lambda: slab_users() == before, "references")
    wait_for(lambda: not run("rmmod", "atp", ok=False).returncode, "unload")


def slab_users():
    with open("/sys/module/atp/refcnt", encoding="ascii") as f:
        return int(f.read())


@test
def namespace_outlives_its_last_process_by_a_socket():
    """A socket holds its namespace, wherever it is used."""
    new_net()
    nl = Netlink()
    nl.add(JOB)
    socks = join(JOB)
    new_net()
    sum_works(socks)
    same(Netlink().dump(GET), [])
    for s in socks:
        s.close()


@test
def protocols_counts_sockets():
    new_net()
    socks = [sock() for _ in range(5)]
    same(proc_protocols()[0], 5)
    for s in socks[2:]:
        s.close()
    same(proc_protocols()[0], 2)
    for s in socks:
        s.close()
    same(proc_protocols()[0], 0)


@test
def memory_is_charged_and_given_back():
    new_net()
    nl = Netlink()
    nl.add(JOB)
    slack = PAGES_PER_CPU * os.cpu_count()
    chunk = bytes(4 << 20 >> 1)
    for _ in range(6):
        socks = []
        for k in range(8):
            if k:
                nl.add(100 + k)
            pair = join(100 + k if k else JOB)
            socks.append(pair)
            pair[0].send(chunk)
        # 8 chunks of 512 pages
        same(proc_protocols()[1] >= 8 * 512 - slack, True, proc_protocols())
        for pair in socks:
            pair[0].close()
            pair[1].close()
        same(proc_protocols()[1] <= slack, True, proc_protocols())
        for k in range(1, 8):
            nl.delete(100 + k)
    # and after sums, not only after close
    socks = join(JOB)
    for _ in range(20):
        for s in socks:
            s.send(chunk)
        for s in socks:
            same(len(s.recv(len(chunk))), len(chunk))
    same(proc_protocols()[1] <= slack, True, proc_protocols())


def memory_current(group):
    with open(f"{group}/memory.current", encoding="ascii") as f:
        return int(f.read())


@test
def memory_is_charged_to_the_control_group():
    """What a PS holds is the operator's, what is pushed is the worker's."""
    base = "/sys/fs/cgroup"
    with open(f"{base}/cgroup.subtree_control", "w", encoding="ascii") as f:
        f.write("+memory")
    group = f"{base}/atp-socket-{os.getpid()}"
    os.mkdir(group)
    new_net()
    Netlink().add(JOB)
    before = memory_current(group)
    with open(f"{group}/cgroup.procs", "w", encoding="ascii") as f:
        f.write(str(os.getpid()))
    socks = join(JOB)
    for _ in range(2):
        socks[0].send(bytes(1900000))
    wait_for(lambda: memory_current(group) - before >= 3800000, "charged")
    nl = Netlink()
    nl.add(8, more=attr(J_WINDOW, 4096) + attr(J_FRAGMENT, 3400))
    size = u32(nl.job(8)[J_MEMORY])
    same(size > 2 * 4096 * 3400, True)
    wait_for(lambda: memory_current(group) - before >= 3800000 + size, "PS")
    for s in socks:
        s.close()
    nl.delete(8)
    wait_for(lambda: memory_current(group) - before < size, "given back")
    with open(f"{base}/cgroup.procs", "w", encoding="ascii") as f:
        f.write(str(os.getpid()))


class Trace:
    """Lines of the events, as they come."""
    def __init__(self, *names):
        for name in names:
            with open(f"{TRACE}events/atp/{name}/enable", "w",
                      encoding="ascii") as f:
                f.write("1")
        with open(f"{TRACE}trace", "w", encoding="ascii") as f:
            f.write("")
        self.netns = os.stat("/proc/self/ns/net").st_ino

    def lines(self, name, *words):
        with open(f"{TRACE}trace", encoding="ascii") as f:
            return [x for x in f if f" {name}: " in x and
                    f"netns={self.netns} " in x and
                    all(f" {w} " in x.replace("\n", " ") for w in words)]

    def end(self):
        with open(f"{TRACE}events/atp/enable", "w", encoding="ascii") as f:
            f.write("0")


@test
def tracepoints_exist():
    run("modprobe", "atp")
    names = {n for n in os.listdir(f"{TRACE}events/atp") if n.startswith("atp_")}
    same(names, {f"atp_{n}" for n in ("send", "receive", "retransmit", "complete",
                                      "drop", "fallback", "ecn")})


@test
def tracepoints_fire():
    new_net()
    nl = Netlink()
    nl.add(JOB, more=attr(J_FRAGMENT, 400))
    socks = join(JOB)
    t = Trace("atp_send", "atp_receive", "atp_retransmit", "atp_complete",
              "atp_drop", "atp_fallback", "atp_ecn")
    try:
        sum_works(socks)    # 10 fragments
        for rank in range(2):
            same(len(t.lines("atp_send", f"job={JOB}", f"rank={rank}")), 10)
        for seq in range(10):
            same(len(t.lines("atp_complete", f"seq={seq}",
                             f"epoch={Info(socks[0]).epoch}")), 1)
            same(len(t.lines("atp_receive", f"seq={seq}", "type=1")) >= 3, True)
        # 400 bytes behind 36
        same(len(t.lines("atp_send", "seq=9", "len=436")), 2)
        # a peer is late: the fragment goes again
        pushed(socks[0], 1)
        wait_for(lambda: t.lines("atp_retransmit", "rank=0", "seq=10"),
                 "retransmit")
        pushed(socks[1], 1)
        for s in socks:
            pulled(s, 1)
        # an overflow
        for s in socks:
            pushed(s, 0x7fffffff)
        for s in socks:
            refused(errno.EOVERFLOW, s.recv, 4)
        same(len(t.lines("atp_fallback", "seq=11")) >= 1, True)
        # a mark: rank 1's fragment, said by us
        pushed(socks[0], 5)
        udp("127.0.0.2", data(JOB, [6], epoch=Info(socks[0]).epoch, seq=12,
                              bitmap=2, flags=LAST | ECN))
        same(pulled(socks[0], 1), [11])
        same(len(t.lines("atp_ecn", "seq=12")) >= 1, True)
        for packet, reason in ((b"", "short"), (bytes(36), "version"),
                               (data(99, [1]), "job")):
            udp("127.0.0.2", packet)
            wait_for(lambda r=reason: t.lines("atp_drop", f"reason={r}"), reason)
    finally:
        t.end()


@test
def every_drop_has_a_name():
    """Those of the tracepoint are those of the counters."""
    nl = Netlink()
    names = {k[5:] for k in nl.counters() if k.startswith("drop_")}
    with open(f"{TRACE}events/atp/atp_drop/format", encoding="ascii") as f:
        text = f.read()
    for n in names:
        same(f'"{n}"' in text, True, n)


@test
def unload_is_safe_after_tracing():
    run("modprobe", "atp")
    t = Trace("atp_drop")
    t.end()
    wait_for(lambda: not run("rmmod", "atp", ok=False).returncode, "unload")
    same(os.path.isdir(f"{TRACE}events/atp"), False)


@test
def killed_in_the_middle():
    """Workers that are killed in whatever call they are leave nothing."""
    new_net()
    nl = Netlink()
    nl.add(JOB)
    for k in range(10):
        pids = []
        for rank in range(2):
            pid = os.fork()
            if not pid:
                s = sock()
                start_join(s, JOB, rank)
                s.setblocking(True)
                while True:
                    try:
                        pushed(s, *range(3000))
                        pulled(s, 3000)
                    except OSError:
                        pass
            pids.append(pid)
        want = (k + 1) * 40
        wait_for(lambda w=want: nl.counters(JOB)["chunks"] > w, "chunks")
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        for pid in pids:
            os.waitpid(pid, 0)
    same(nl.dump(SOCK_GET), [])
    sum_works(join(JOB))


main()
