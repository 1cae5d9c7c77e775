# SPDX-License-Identifier: GPL-2.0
"""Two jobs at work, and what the parties count meanwhile.

Job 7 has three ranks and IPv4, job 8 two of the same hosts and IPv6, so that
w2 is a stranger to it.  The kernel at the PS answers the one, an application the
other, which sends sums back as they are.  Whatever is injected while they run,
every sum is compared with the oracle, which is Python's integers.
"""
import array
import collections
import json
import os
import random
import re
import subprocess

from atptest import DTYPE, FLOAT32, INT32, JOINED, SOL_ATP, Info, Netlink, same, \
    sock, start_join, wait_for
from rack import atp, inside, rack
from wire import Taps

HOSTS = ("w0", "w1", "w2", "ps")
JOBS = {7: (4, 3), 8: (6, 2)}    # family, ranks
SERVED = 8                       # by an application
SERVER = 0xffff
LANES, FRAGMENTS = 1300, 4       # of a chunk; the last fragment is short
POOL = 4                         # different chunks
# What recovery on a slow machine may cause by itself
RECOVERY = {"duplicate", "overlap"}
TRACING = "/sys/kernel/tracing/instances/hostile"
LINE = re.compile(r"atp_drop: netns=(\d+) job=(\d+) reason=(\w+)")
# Reasons that are found before a packet's job is; one that is found after that, too,
# is expected as "its REASON" then
BEFORE = {"short", "version", "type", "flags", "length", "checksum", "fragment",
          "options", "dtype", "fanin", "bitmap", "elements", "job", "icmp"}
REFUSED = "action=ABORTED"
FREED = re.compile(r"kfree_skb: .*protocol=(\d+) .*reason: (\w+)")
KFREE_SKB = "events/skb/kfree_skb"
# Why the stack frees what is injected; all else is much, and not of interest
REASONS = ("UDP_CSUM", "IP_CSUM", "PKT_TOO_SMALL", "OTHERHOST",
           "UNHANDLED_PROTO")
EVENTS = ("atp/atp_drop", "xdp/xdp_exception", "skb/kfree_skb")


class Trace:
    """The tracepoints atp:atp_drop, for the switch xdp:xdp_exception, and for the
    stack skb:kfree_skb"""
    def __init__(self):
        os.makedirs(TRACING, exist_ok=True)
        self.host = {os.stat(f"/run/netns/atp-{h}").st_ino: h for h in HOSTS}
        self._only_reasons()
        self._enable("1")

    def _only_reasons(self):
        """Each kernel has its own numbers for them."""
        with open(f"{TRACING}/{KFREE_SKB}/format", encoding="ascii") as f:
            numbers = {name: n for n, name in
                       re.findall(r'{ (\d+), "(\w+)" }', f.read())}
        self._write(f"{KFREE_SKB}/filter", " || ".join(
            f"reason == {numbers[name]}" for name in REASONS))

    def _enable(self, text):
        for event in EVENTS:
            self._write(f"events/{event}/enable", text)

    def _write(self, name, text):
        with open(f"{TRACING}/{name}", "w", encoding="ascii") as f:
            f.write(text)

    def clear(self):
        self._write("trace", "")

    @staticmethod
    def _read():
        with open(f"{TRACING}/trace", encoding="ascii") as f:
            return f.read()

    def refused(self):
        """How often the switch's program has ended as what traces it"""
        return self._read().count(REFUSED)

    def drops(self):
        """(host, job, reason) and how often since clear()"""
        found = LINE.findall(self._read())
        return collections.Counter((self.host[int(n)], int(job), r)
                                   for n, job, r in found if r not in RECOVERY)

    def freed(self):
        """(reason, protocol) and how often since clear(), on all hosts"""
        found = FREED.findall(self._read())
        return collections.Counter((r, int(n)) for n, r in found)

    def close(self):
        self._enable("0")
        os.rmdir(TRACING)


class Live:
    """Rack, jobs, oracle, counters"""
    def __init__(self):
        rack("up", 3, 1500)
        rack("switch_on", "aggregators", 1024)
        for job, (family, ranks) in JOBS.items():
            # a machine that is slow is not dead
            rack("job_add", job, ranks, family, "timeout", 600000,
                 *(["server"] if job == SERVED else []))
        self.nl, self.socks = {}, {}
        for host in HOSTS:
            with inside(host):
                self.nl[host] = Netlink()
        self.taps = Taps(HOSTS)
        self.trace = Trace()
        rng = random.Random(5)
        self.pool = {
            (job, rank): [array.array("i", [rng.randrange(-10**6, 10**6)
                                            for _ in range(LANES)])
                          for _ in range(POOL)]
            for job, (_, ranks) in JOBS.items() for rank in range(ranks)}
        self.sum = {job: [array.array("i", map(sum, zip(*[
            self.pool[job, rank][k] for rank in range(ranks)])))
            for k in range(POOL)] for job, (_, ranks) in JOBS.items()}
        self.chunk = 0
        for job in JOBS:
            self.join(job)
        self.round()

    def close(self):
        self.trace.close()
        rack("down")

    def join(self, job):
        # who comes last need not wait
        members = {SERVER: "ps"} if job == SERVED else {}
        members |= {rank: f"w{rank}" for rank in range(JOBS[job][1])}
        for rank, host in members.items():
            with inside(host):
                self.socks[job, rank] = sock()
            start_join(self.socks[job, rank], job, rank)
        for rank in members:
            s = self.socks[job, rank]
            wait_for(lambda s=s: Info(s).state == JOINED, "joined")
            s.setblocking(True)

    def leave(self, job):
        for key in [key for key in self.socks if key[0] == job]:
            self.socks.pop(key).close()

    def info(self, job, rank=0):
        return Info(self.socks[job, rank])

    def epoch(self, job):
        return self.info(job).epoch

    def push(self, job, rank):
        self.socks[job, rank].send(self.pool[job, rank][self.chunk % POOL])

    def pull(self, job, rank):
        got = array.array("i", self.socks[job, rank].recv(4 * LANES))
        same(got == self.sum[job][self.chunk % POOL], True,
             f"sum of job {job} at rank {rank}")

    def answer(self, left):
        """Sums go back as they come: those that there are, of so many bytes."""
        server = self.socks[SERVED, SERVER]
        got = server.recv(left)
        want = self.sum[SERVED][self.chunk % POOL].tobytes()[-left:]
        same(got, want[:len(got)], "sum at the PS")
        server.send(got)
        return len(got)

    def overflow(self, job):
        """A chunk that fits no integer: the PS adds the values themselves."""
        large = array.array("f", [1e30]) * LANES
        none = array.array("f", bytes(4 * LANES))
        of_job = [self.socks[job, rank] for rank in range(JOBS[job][1])]
        for rank, s in enumerate(of_job):
            s.setsockopt(SOL_ATP, DTYPE, FLOAT32)
            s.send(none if rank else large)
        for s in of_job:
            same(s.recv(4 * LANES) == large.tobytes(), True, "sum of floats")
            s.setsockopt(SOL_ATP, DTYPE, INT32)

    def serve(self):
        left = 4 * LANES
        while left:
            left -= self.answer(left)

    def round(self, meanwhile=None):
        """A chunk of each job; meanwhile, all ranks but the last have sent."""
        for job, (_, ranks) in JOBS.items():
            for rank in range(ranks - 1):
                before = self.info(job, rank).sent
                self.push(job, rank)
                # at least one; a small window has no room for more
                wait_for(lambda j=job, r=rank, b=before:
                         self.info(j, r).sent > b, "sent")
        if meanwhile:
            meanwhile()
        for job, (_, ranks) in JOBS.items():
            self.push(job, ranks - 1)
        self.serve()
        for job, rank in self.socks:
            if rank != SERVER:
                self.pull(job, rank)
        self.chunk += 1

    def windows(self):
        found = {}
        for (job, rank), s in self.socks.items():
            i = Info(s)
            found[job, rank] = (i.state, i.una, i.nxt, i.end, i.cwnd, i.ssthresh)
        return found

    def during(self, inject):
        """When nothing is on its way, and in the middle of a chunk.

        Then recovery changes windows and aggregators by itself, so that only
        what it leaves alone is compared: who has which answers and has heard
        of congestion, and, by round(), all sums.
        """
        before = self.windows(), self.switch()["occupied"]
        inject()
        same((self.windows(), self.switch()["occupied"]), before, "state")

        def answers():
            return {key: (state, una, end, Info(self.socks[key]).ecn)
                    for key, (state, una, _, end, *_)
                    in self.windows().items()}

        def meanwhile():
            then = answers()
            inject()
            same(answers(), then, "answers")
        self.round(meanwhile)
        same({i[0] for i in self.windows().values()}, {JOINED})

    # Counters ---------------------------------------------------------------

    @staticmethod
    def switch():
        """Occupied aggregators, and everything that is counted"""
        status, text = atp("switch", "-json", "switch", "show")
        same(status, 0, text)
        shown = json.loads(text)
        found = {"occupied": {j["job"]: j["occupied"] for j in shown["jobs"]}}
        for name, count in shown["others"].items():
            # control packets of the jobs themselves pass, too
            if name != "control":
                found["other", name] = count
        for job in shown["jobs"]:
            for name, count in job["counters"].items():
                if name.startswith("drop_") or name in ("mismatch", "stale"):
                    found[job["job"], name] = count
        return found

    def drops(self):
        return {(host, reason): n for host, nl in self.nl.items()
                for reason, n in nl.drops().items() if reason not in RECOVERY}

    def inject(self, job, where, host, frames, due=None, switch=None):
        """Send them; exactly this is counted, here and at the tracepoint, which
        names the job if it was found.

        due: {(host, reason): n}, switch: {(job or "other", counter): n}
        """
        expect, traced = collections.Counter(), collections.Counter()
        for (at, reason), n in (due or {}).items():
            name = reason.removeprefix("its ")
            expect[at, name] += n
            traced[at, 0 if reason in BEFORE else job, name] += n
        switch = dict(switch or {})

        def rise(now, then):
            return {k: n - then[k] for k, n in now.items() if n != then[k]}

        before, at_switch = self.drops(), self.switch()
        self.trace.clear()
        # less than a veth's ring holds
        for at in range(0, len(frames), 50):
            self.taps.send(where, host, frames[at:at + 50])
            if expect:
                self.barrier(before, expect, at + 50 >= len(frames))
        if switch:
            wait_for(lambda: all(
                self.switch()[k] >= at_switch[k] + n
                for k, n in switch.items()), f"switch counts {switch}")
        same(rise(self.drops(), before), dict(expect), "drops")
        same(dict(self.trace.drops()), dict(traced), "traced")
        now = self.switch()
        now.pop("occupied")
        same(rise(now, at_switch), switch, "counted by the switch")
        refused = sum(n for (_, name), n in switch.items()
                      if name.startswith("drop_") or name in
                      ("options", "tagged"))
        # the program counts, and the kernel traces it when it has ended
        wait_for(lambda: self.trace.refused() >= refused, "traced refusals")
        same(self.trace.refused(), refused, "refusals of the switch, traced")

    def freed(self, due):
        """The stack has said so of what was injected last.

        due: {(reason, protocol): n}, at least: no event says on which host
        """
        wait_for(lambda: not collections.Counter(due) - self.trace.freed(),
                 f"skb:kfree_skb has {due}")

    def barrier(self, before, expect, last):
        """Until all has come, or, of a part, no more comes"""
        def done():
            now = self.drops()
            return all(now[k] - before[k] >= n for k, n in expect.items())

        if last:
            wait_for(done, f"drops {expect}, not " + repr({
                k: n - before[k] for k, n in self.drops().items()
                if n != before[k]}))
        else:
            then = None
            while then != (then := self.drops()):
                pass

    @staticmethod
    def left_over(host):
        """Frames that came in and no protocol took, as its device counts"""
        shown = subprocess.run(["ip", "-n", f"atp-{host}", "-json", "-s", "-s",
                                "link", "show", "eth0"], check=True, text=True,
                               capture_output=True).stdout
        rx = json.loads(shown)[0]["stats64"]["rx"]
        return sum(rx.get(name, 0)
                   for name in ("dropped", "nohandler", "otherhost"))

    def snmp(self, host, *names):
        """Counters of the stack, by file and name"""
        values = {}
        with inside(host):
            for path in ("/proc/net/snmp", "/proc/net/netstat"):
                with open(path, encoding="ascii") as f:
                    lines = [line.split() for line in f]
                for keys, row in zip(lines[::2], lines[1::2]):
                    for key, value in zip(keys[1:], row[1:]):
                        values[keys[0][:-1] + key] = int(value)
            with open("/proc/net/snmp6", encoding="ascii") as f:
                for line in f:
                    key, value = line.split()
                    values[key] = int(value)
        return [values[name] for name in names]
