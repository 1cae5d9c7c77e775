# SPDX-License-Identifier: GPL-2.0
"""Virtual machines that the host tells what to do.

  machine "rack"                                        machine "ps"
  +--------------------------------------+              +-----------------+
  | namespaces of rack.sh:               |    cable     |                 |
  |   w0, w1, w2 --veth-- switch --------|--------------| 10.0.0.254      |
  |                                      | Unix socket  |                 |
  +--------------------------------------+              +-----------------+
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(
    0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib")
)
from rack import TOP  # noqa: E402

WORKERS = 3
JOB = 7
RACK = "selftests/lib/rack.sh"
HOSTS = [f"w{rank}" for rank in range(WORKERS)]
MEMBERS = " ".join(["ps 10.0.0.254"] + [
    f"worker 10.0.0.{rank + 1}" for rank in range(WORKERS)
])
# Of a worker; makes a run last
DELAY = "50ms"
# For what never comes; several emulated machines may share a processor
LIMIT = 480


class Machine:
    """It carries out commands, one after another (agent.sh)."""

    def __init__(self, name, kernel, cable):
        self.name = name
        self.count = 0
        place = f"machines/{os.getpid()}-{name}-{time.monotonic_ns()}"
        self.dir = os.path.join(TOP, "build/vm-out", place)
        self.said = os.path.join(self.dir, "said")
        os.makedirs(self.dir)
        with open(self.said, "w", encoding="utf-8") as said:
            self.process = subprocess.Popen(
                [os.path.join(TOP, "selftests/vm/run-vm.sh"),
                 "--kernel", kernel, "--mem", "1024", "--cable", cable,
                 "--timeout", "3000", "--out", os.path.join(self.dir, "log"),
                 "--", "selftests/faults/agent.sh", f"/out/{place}"],
                stdin=subprocess.DEVNULL, stdout=said, stderr=said,
            )

    def report(self):
        """What run-vm.sh has said."""
        with open(self.said, encoding="utf-8", errors="replace") as said:
            return f"{self.name}: {said.read()[-3000:]}"

    def was_booted_again(self):
        """Not the machine has failed, but what emulates it."""
        return "a fault of the emulator" in self.report()

    def wait_for(self, condition, what):
        end = time.monotonic() + LIMIT
        while not condition():
            if self.process.poll() is not None:
                raise AssertionError(f"it went down: {self.report()}")
            if time.monotonic() > end:
                raise AssertionError(f"no {what}: {self.report()}")
            time.sleep(0.05)

    def _file(self, kind):
        return os.path.join(self.dir, f"{self.count}.{kind}")

    def _read(self, kind):
        with open(self._file(kind), encoding="utf-8") as file:
            return file.read()

    def _leave(self, script):
        self.count += 1
        with open(self._file("new"), "w", encoding="utf-8") as new:
            new.write(script)
        os.rename(self._file("new"), self._file("do"))

    def do(self, script):
        """Its output; it must succeed."""
        self._leave(script)
        self.wait_for(lambda: os.path.exists(self._file("status")),
                      f"end of {script}")
        if int(self._read("status")):
            raise AssertionError(f"{self.name}: {script}: {self._read('out')}")
        return self._read("out")

    def until(self, script):
        """Poll there, where a question costs less."""
        self.do(f"""for i in {{1..3000}}; do
                if {script}; then exit; fi
                sleep 0.05
            done
            exit 1""")

    def power_off(self):
        """Nothing of it has time to say goodbye.  Nor does anybody bring its
        kernel's log back, so that is looked at before."""
        self.do("dmesg | selftests/vm/splat.sh")
        self._kill()

    def _kill(self):
        self.process.terminate()
        self.process.wait()

    def end(self):
        """Down in order; its kernel had nothing to complain about."""
        self._leave("")
        if self.process.wait(LIMIT):
            raise AssertionError(self.report())

    def close(self):
        if self.process.poll() is None:
            self._kill()
        shutil.rmtree(self.dir)


class Rack:
    """Both machines."""

    def __init__(self, kernels):
        self.kernels = kernels
        self.dir = tempfile.mkdtemp(prefix="atp-cable.")
        self.socket = os.path.join(self.dir, "socket")
        self.machines = []
        self.workers = self.ps = None
        self.seconds = 10

    def close(self):
        for machine in self.machines:
            machine.close()
        shutil.rmtree(self.dir)

    def _boot(self, *words):
        self.machines.append(Machine(*words))
        return self.machines[-1]

    def boot(self):
        """They come up at the same time. The switch asks for the PS's host
        when it learns of a job."""
        self.workers = self._boot("rack", self.kernels[0],
                                  f"listen:{self.socket}")
        self.workers.wait_for(lambda: os.path.exists(self.socket), "cable")
        self.boot_ps()
        self.set_up_ps()
        self.set_up_workers()

    def boot_ps(self):
        self.ps = self._boot("ps", self.kernels[1], f"connect:{self.socket}")

    def job_words(self):
        return (f"job add {JOB} {MEMBERS} fragment 248 "
                f"timeout {self.seconds}s")

    def set_up_workers(self):
        """The rack's own PS host gives way to the cable."""
        self.workers.do(f"""set -e
            modprobe -a atp virtio_net
            {RACK} up {WORKERS}
            ip -n atp-switch link del ps
            card=$(ip -o link show | grep 02:01:00:00:00:fe | cut -d: -f2)
            ip link set $card netns atp-switch name ps
            ip -n atp-switch link set ps master br0 addrgenmode none up
            for host in {" ".join(HOSTS)}; do
                {RACK} netem $host out delay {DELAY}
                build/bin/atp -netns atp-$host {self.job_words()}
            done
            {RACK} switch_on
            nsenter --net=/run/netns/atp-switch build/bin/atp switch \
                job add {JOB} {MEMBERS}""")

    def set_up_ps(self):
        """As after a boot; a neighbour that is known costs no second."""
        self.ps.do("\n".join(
            ["set -e",
             "modprobe virtio_net",
             "ip address add 10.0.0.254/24 dev eth0",
             "ip link set eth0 up"] +
            [f"ip neigh replace 10.0.0.{rank + 1} dev eth0 "
             f"lladdr 02:00:00:00:00:{rank + 1:02x} nud permanent"
             for rank in range(WORKERS)]
        ))
        self.load_ps()

    def load_ps(self):
        self.ps.do(f"modprobe atp && build/bin/atp {self.job_words()}")

    def set_timeout(self, seconds):
        """Of the next run, and of what is added from now on."""
        self.seconds = seconds
        words = f"job set {JOB} timeout {seconds}s"
        self.ps.do(f"build/bin/atp {words}")
        for host in HOSTS:
            self.workers.do(f"build/bin/atp -netns atp-{host} {words}")
