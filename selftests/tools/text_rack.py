# SPDX-License-Identifier: GPL-2.0
"""The rack that the texts speak of: four workers, 10.0.0.1 to 10.0.0.4, the
PS host 10.0.0.254, a switch whose ports are eth0 to eth4, the user alice; and
what "make install" leaves, in its place.  Files are mounted over the machine's
for this process alone."""

import ctypes
import fcntl
import os
import pty
import pwd
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import traceback

from live import TOP, expect, rack, wait_for
from rack import inside
from test_sockets import ATP_DTYPE, INT32, SOL_ATP, Rank

import kmod

CLONE_NEWNS = 0x00020000
ROOT = os.path.join(TOP, "build/selftests/tools/root")
WORKERS = 4
JOB = 7
# seconds, for what never ends
LIMIT = 300
STALLED = 118
# int32 of a full fragment
LANES = 350
INTERRUPT = b"\3"
# Ports in their order: the first three are enough for two workers.
PORTS = ("w0", "w1", "ps", "w2", "w3")
COLLECTOR = "/var/lib/prometheus/node-exporter"
folder = tempfile.TemporaryDirectory()


def sh(*words, **more):
    done = subprocess.run(list(map(str, words)), text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          **more)
    expect((words, done.returncode, done.stdout if done.returncode else ""),
           (words, 0, ""))
    return done.stdout


def file_with(name, text):
    path = os.path.join(folder.name, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def cover():
    """Users, the collector's folder, and what was installed."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS):
        raise OSError(ctypes.get_errno(), "unshare")
    # who is started in the background ignores it, and so would his children
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sh("mount", "--make-rprivate", "/")
    os.chmod(folder.name, 0o755)
    for name, line in (("passwd", "alice:x:4797:4797::/:/bin/sh\n"),
                       ("group", "alice:x:4797:\n")):
        with open(f"/etc/{name}", encoding="utf-8") as f:
            path = file_with(name, f.read() + line)
        sh("mount", "--bind", path, f"/etc/{name}")
    os.makedirs(COLLECTOR, exist_ok=True)
    sh("mount", "--bind", f"{ROOT}/usr/local", "/usr/local")
    # the library's "make install" calls ldconfig, which takes its time here
    os.environ["LD_LIBRARY_PATH"] = "/usr/local/lib"
    os.environ["LIBATP"] = "/usr/local/lib/libatp.so.1"
    python = "python%d.%d" % sys.version_info[:2]
    sys.path.append(f"/usr/local/lib/{python}/dist-packages")


def lay_out():
    rack("up", WORKERS)
    lines = [f"link set {host} down\nlink set {host} name eth{number} up\n"
             for number, host in enumerate(PORTS)]
    sh("ip", "-n", "atp-switch", "-batch", "-", input="".join(lines))


class Terminal:
    """What goes on until it is interrupted, on a terminal."""

    def __init__(self, host, line):
        self.line, self.seen = line, ""
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120,
                                                           0, 0))
        with inside(host):
            self.process = subprocess.Popen(
                ["bash", "-c", line], stdin=slave, stdout=slave, stderr=slave,
                env={**os.environ, "TERM": "xterm"}, start_new_session=True)
        os.close(slave)

    def read(self, seconds):
        if not select.select([self.master], [], [], seconds)[0]:
            return
        try:
            self.seen += os.read(self.master, 65536).decode(
                errors="replace")
        except OSError:
            # it has ended
            time.sleep(seconds)

    def shows(self, pattern, provoke):
        end = time.monotonic() + LIMIT
        while not re.search(pattern, self.seen, re.M):
            if self.process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"{self.line}: no {pattern} in "
                                     f"{self.seen}")
            provoke()
            self.read(0.5)

    def end(self, key):
        """By the user, and well."""
        end = time.monotonic() + LIMIT
        if key == INTERRUPT:
            os.killpg(self.process.pid, signal.SIGINT)
        else:
            os.write(self.master, key)
        while self.process.poll() is None and time.monotonic() < end:
            # who does not read does not let it end
            self.read(0.1)
        expect((self.line, self.process.poll() in (0, -signal.SIGINT)),
               (self.line, True))

    def close(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.master)


class Ranks:
    """A run in which rank 1 is behind."""

    def __init__(self, workers):
        self.ranks = [Rank(rank) for rank in range(workers)]
        for rank in self.ranks:
            rank.begin()
        for rank in self.ranks:
            rank.joined()
            rank.sock.setsockopt(SOL_ATP, ATP_DTYPE, INT32)
        self.push(self.ranks, STALLED)
        self.pull(STALLED)
        self.push(self.others(), 1)

    def others(self):
        return [rank for rank in self.ranks if rank.rank != 1]

    @staticmethod
    def push(ranks, fragments):
        for rank in ranks:
            rank.push(*[1] * LANES * fragments)

    def pull(self, fragments):
        count = LANES * fragments
        for rank in self.ranks:
            expect(rank.pull(count), (len(self.ranks),) * count)

    def go_on(self):
        self.push(self.ranks[1:2], 1)
        self.pull(1)
        self.push(self.others(), 1)

    def close(self):
        for rank in self.ranks:
            rank.close()


class State:
    """What the hosts know, and how they come to."""

    def __init__(self, lines):
        # how to add a job, to attach and so on: as in the README
        self.lines = lines
        self.job = self.switch = self.switch_job = self.run = None

    def hosts(self, line=None):
        """Those of the job, or of one that this line adds."""
        return [*(f"w{int(number) - 1}" for number in
                  re.findall(r" worker 10\.0\.0\.(\d+)", line or self.job)),
                "ps"]

    def on(self, hosts, line):
        """A line on hosts, at the same time; what each says."""
        running = []
        for host in hosts:
            with inside(host):
                running.append(subprocess.Popen(
                    ["bash", "-c", line], stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                    text=True))
        found = []
        for host, process in zip(hosts, running):
            output, _ = process.communicate(timeout=LIMIT)
            if process.returncode:
                raise AssertionError(f"{host}: {line}: status "
                                     f"{process.returncode}: {output}")
            found.append(output)
        return found

    def did(self, line):
        """A line has been run: what is different now?"""
        if line.startswith("atp job add "):
            self.job = line
        elif line.startswith("atp job del "):
            self.job = None
        elif line.startswith("atp switch attach "):
            self.switch = line
        elif line.startswith("atp switch detach"):
            self.switch = self.switch_job = None
        elif line.startswith("atp switch job add "):
            self.switch_job = line
        elif line.startswith("atp switch job del "):
            self.switch_job = None

    def do(self, hosts, line):
        found = self.on(hosts, line)
        self.did(line)
        return found

    def add_job(self, line):
        self.do(self.hosts(line), line)

    def ensure(self, words):
        for word in words.split():
            getattr(self, "no_" + word[1:] if word[0] == "-"
                    else "a_" + word)()

    def a_job(self):
        if not self.job:
            self.add_job(self.lines["atp job add"])

    def no_job(self):
        self.no_run()
        if self.job:
            self.do(self.hosts(), f"atp job del {JOB}")

    def a_switch(self):
        if not self.switch:
            self.do(["switch"], self.lines["atp switch attach"])

    def no_switch(self):
        if self.switch:
            self.do(["switch"], "atp switch detach")

    def a_switch_job(self):
        self.a_switch()
        if not self.switch_job:
            self.do(["switch"], self.lines["atp switch job add"])

    def no_switch_job(self):
        self.a_switch()
        if self.switch_job:
            self.do(["switch"], f"atp switch job del {JOB}")

    def a_run(self):
        self.a_job()
        if not self.run:
            self.run = Ranks(len(self.hosts()) - 1)

    def an_event(self):
        self.on(["ps"], f"atp job set {JOB} timeout 30s")

    def no_run(self):
        if self.run:
            self.run.close()
            self.run = None

    def a_module(self):
        kmod.load()

    def no_module(self):
        """Nor anybody who keeps it."""
        self.no_job()
        kmod.unload()

    def no_user(self):
        """Nobody keeps the module."""
        self.no_job()
        self.a_module()
        wait_for(lambda: not kmod.users(), "end of the last socket")

    def no_offloads(self):
        """Hosts' devices as a veth comes."""
        self.on(PORTS, "ethtool -K eth0 gro off tx on")

    def a_server(self):
        """The README's job, with one."""
        self.no_job()
        self.add_job(self.lines["atp job add"] + " server")

    def a_alices_job(self):
        """The job that all programs are for."""
        self.no_run()
        if self.job != self.lines["atp job add"]:
            self.no_job()
            self.a_job()

    def reset(self):
        """As the reader of the next text finds it, but for the switch of them
        all: attaching it takes long."""
        self.no_job()
        if self.switch != self.lines["atp switch attach"]:
            self.no_switch()


def alice():
    user = pwd.getpwnam("alice")
    os.setgroups([])
    os.setgid(user.pw_gid)
    os.setuid(user.pw_uid)


class Program:
    """Something that alice, or root, runs on a host."""

    def __init__(self, host, do, who=alice):
        there, ours = os.pipe()
        self.output = there
        self.pid = os.fork()
        if self.pid:
            os.close(ours)
            return
        status = 1
        try:
            os.dup2(ours, 1)
            os.dup2(ours, 2)
            # it is left by the end of the process
            there = inside(host)
            there.__enter__()
            who()
            do()
            sys.stdout.flush()
            status = 0
        except BaseException:    # it must not come back as another parent
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(status)

    def end(self):
        output, end = b"", time.monotonic() + LIMIT
        while time.monotonic() < end:
            if select.select([self.output], [], [], 1)[0]:
                part = os.read(self.output, 65536)
                if not part:
                    break
                output += part
        else:
            os.kill(self.pid, signal.SIGKILL)
        os.close(self.output)
        _, status = os.waitpid(self.pid, 0)
        return os.waitstatus_to_exitcode(status), output.decode()


def every_rank(make, want):
    """make(rank) for each: what they print."""
    programs = [Program(f"w{rank}", make(rank)) for rank in range(WORKERS)]
    expect([program.end() for program in programs], [(0, want)] * WORKERS)

