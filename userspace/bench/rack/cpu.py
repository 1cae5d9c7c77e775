# SPDX-License-Identifier: GPL-2.0
"""CPU time of the machine, and of one part of the rack.

The kernel's work on a packet is charged to whoever runs when it comes, so what
a part costs cannot be read off its processes.  Instead it gets one of the two
CPUs for itself: its processes, and its devices' reception, which is steered
there (receive packet steering; where a device polls, its own thread).  What is
sent is worked on by the sender, up to the other end of the cable.
"""
import contextlib
import os
import subprocess
import time

TICK = os.sysconf("SC_CLK_TCK")
CPUS = os.cpu_count()
PARTS = ("workers", "switch", "ps")

# Of a namespace's devices: reception on the CPUs of a mask, by threads (1) or not
# (0); where nothing polls there is no such choice (-)
STEER = """
mask=$1 threaded=$2; shift 2
for dev; do
	for queue in /sys/class/net/$dev/queues/rx-*; do
		echo $mask >$queue/rps_cpus
	done
	[ $threaded = - ] || echo $threaded >/sys/class/net/$dev/threaded
done
"""


def _in_host(host, script, *words):
    # ip netns exec brings the sysfs of the namespace
    subprocess.run(["ip", "netns", "exec", f"atp-{host}", "sh", "-ec", script,
                    "sh", *words], check=True)


def _poll_threads():
    """{device: pids}"""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm", encoding="ascii") as f:
                name = f.read().strip()
        except OSError:
            continue
        if name.startswith("napi/"):
            device = name[len("napi/"):].rpartition("-")[0]
            found.setdefault(device, set()).add(int(pid))
    return found


def _steer(host, mask, threaded, *devices):
    _in_host(host, STEER, f"{mask:x}", str(threaded), *devices)


@contextlib.contextmanager
def one_cpu(hosts, program):
    """The switch receives on one CPU.  An emulated CPU stops for milliseconds; if
    that one has an aggregator's lock, another cannot wait for it.  Its ports poll
    if the program is there."""
    _steer("switch", 2, 1 if program else "-", *hosts)
    if program:
        threads = _poll_threads()
        for host in hosts:
            for pid in threads[host]:
                _pin(pid, {1})
    try:
        yield
    finally:
        _steer("switch", 0, 0 if program else "-", *hosts)


def _pin(pid, cpu):
    for thread in os.listdir(f"/proc/{pid}/task"):
        os.sched_setaffinity(int(thread), cpu)


class Isolation:
    """Gives CPU 1 to one part and CPU 0 to all else."""

    def __init__(self, hosts, systems):
        self.hosts, self.systems = hosts, systems
        self.ps_threads = None

    def apply(self, part):
        """Also after the switch has come or gone, which makes new threads."""
        cpu = {p: {int(p == part)} for p in PARTS}
        mask = {p: 1 << int(p == part) for p in PARTS}
        os.sched_setaffinity(0, {0})
        _steer("ps", mask["ps"], 1, "eth0")
        if self.ps_threads is None:
            # nobody else has any yet
            self.ps_threads = _poll_threads().get("eth0", set())
        for host in self.hosts[:-1]:
            _steer(host, mask["workers"], 1, "eth0")
        _steer("switch", mask["switch"], 1, *self.hosts)
        threads = _poll_threads()
        workers = threads.pop("eth0", set()) - self.ps_threads
        for pids, of in ((workers, "workers"), (self.ps_threads, "ps"),
                         (set().union(*threads.values()), "switch")):
            for pid in pids:
                _pin(pid, cpu[of])
        for system in self.systems:
            for pid in system.pids:
                _pin(pid, cpu["workers"])
            for pid in system.ps_pids:
                _pin(pid, cpu["ps"])


def _idle(cpu):
    with open("/proc/stat", encoding="ascii") as f:
        for line in f:
            name, *fields = line.split()
            if name == f"cpu{cpu}":
                return (int(fields[3]) + int(fields[4])) / TICK
    raise AssertionError(f"no CPU {cpu}")


class Meter:
    """Seconds in which each CPU had something to do since it was made."""

    def __init__(self):
        self.before = self._read()

    @staticmethod
    def _read():
        return [time.monotonic()] + [_idle(cpu) for cpu in range(CPUS)]

    def busy(self):
        wall, *idle = (b - a for a, b in zip(self.before, self._read()))
        return [max(wall - i, 0) for i in idle]
