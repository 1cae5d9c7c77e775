# SPDX-License-Identifier: GPL-2.0
"""The systems that are compared: how each is started, and how it is asked."""
import os
import socket
import subprocess
import sys

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
sys.path.insert(0, os.path.join(TOP, "selftests/lib"))
from rack import inside, rack  # noqa: E402

HERE = os.path.join(TOP, "userspace/bench/rack")
PATIENCE = 1800     # seconds, for what never comes
PS = "10.0.0.254"

MPIRUN = ("mpirun", "--allow-run-as-root", "--oversubscribe",
          "--mca", "plm_rsh_agent", f"{HERE}/mpi_agent.sh",
          "--mca", "plm_rsh_no_tree_spawn", "1", "--mca", "routed", "direct",
          "--mca", "orte_keep_fqdn_hostnames", "1",
          "--mca", "pml", "ob1", "--mca", "btl", "tcp,self",
          "--mca", "btl_tcp_if_include", "10.0.0.0/24",
          "--mca", "oob_tcp_if_include", "10.0.0.0/24",
          "--mca", "mpi_yield_when_idle", "1")


def address(rank):
    return f"10.0.0.{rank + 1}"


class System:
    """One way to add tensors, with its processes on some workers."""
    switch = False

    def __init__(self, workers, programs, work):
        self.workers, self.programs = workers, programs
        self.folder = f"{work}/{type(self).__name__}-{workers}"
        os.makedirs(self.folder)
        self.socket = f"{self.folder}/socket"
        self.ranks = range(workers)
        self.started, self.pids, self.ps_pids = [], [], []
        self.files = [None] * workers

    def spawn(self, host, *words):
        with open(f"{self.folder}/log", "ab") as log, inside(host):
            self.started.append(subprocess.Popen(
                list(map(str, words)), stdin=subprocess.DEVNULL, stdout=log,
                stderr=log))
        return self.started[-1].pid

    def program(self, name):
        return f"{self.programs}/{name}"

    def launch(self):
        for rank in self.ranks:
            self.spawn(f"w{rank}", *self.words(rank))

    def fail(self, what):
        with open(f"{self.folder}/log", encoding="utf-8",
                  errors="replace") as log:
            sys.stdout.write(log.read())
        sys.exit(f"bench: {self.name}, {self.workers} workers: {what}")

    def start(self):
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self.socket)
            listener.listen(self.workers)
            listener.settimeout(PATIENCE)
            self.launch()
            for _ in self.ranks:
                try:
                    conn = listener.accept()[0]
                except TimeoutError:
                    self.fail("a member does not come")
                conn.settimeout(PATIENCE)
                file = conn.makefile("rw", encoding="ascii")
                word, rank, pid = file.readline().split()
                if word != "hello" or self.files[int(rank)]:
                    self.fail("who is there?")
                self.files[int(rank)] = file
                self.pids.append(int(pid))

    def tell(self, line):
        for file in self.files:
            file.write(line + "\n")
            file.flush()

    def answers(self, word):
        """What each rank says behind that word."""
        said = []
        for rank, file in enumerate(self.files):
            try:
                first, _, rest = file.readline().partition(" ")
            except TimeoutError:
                self.fail(f"rank {rank} is silent")
            if first.strip() != word:
                self.fail(f"rank {rank}: {first} {rest}")
            said.append(rest)
        return said

    def ask(self, line, word):
        self.tell(line)
        return self.answers(word)

    def stop(self):
        for file in self.files:
            file.close()
        for process in self.started:
            try:
                if process.wait(PATIENCE):
                    self.fail(f"exit status {process.returncode}")
            except subprocess.TimeoutExpired:
                self.fail("does not end")


class AtpPs(System):
    name = "ATP, PS alone"
    first_job = 100

    def job(self):
        return self.first_job + self.workers

    def launch(self):
        # a loaded machine is not a dead host
        rack("job_add", self.job(), self.workers, 4, "timeout", "60s")
        super().launch()

    def words(self, rank):
        return (self.program("atp"), self.socket, rank, self.workers,
                self.job())


class AtpSwitch(AtpPs):
    name = "ATP, switch"
    first_job = 200
    switch = True


class GlooRing(System):
    name = "Gloo, ring"
    algorithm = "ring"

    def words(self, rank):
        return (self.program("gloo"), self.socket, rank, self.workers,
                address(rank), self.folder, self.algorithm)


class GlooHalving(GlooRing):
    name = "Gloo, halving-doubling"
    algorithm = "halving-doubling"


class OpenMpi(System):
    name = "Open MPI"

    def launch(self):
        hosts = ",".join(map(address, self.ranks))
        self.spawn("w0", "unshare", "--uts", "sh", "-c",
                   'hostname mpirun; exec "$@"', "sh", *MPIRUN,
                   "-np", self.workers, "-H", hosts, self.program("mpi"),
                   self.socket)


class TcpPs(System):
    name = "TCP, PS"

    def launch(self):
        self.ps_pids.append(self.spawn("ps", self.program("tcp_ps"),
                                       self.workers, PS))
        super().launch()

    def words(self, rank):
        return self.program("tcp"), self.socket, rank, self.workers, PS


SYSTEMS = (AtpSwitch, AtpPs, GlooRing, GlooHalving, OpenMpi, TcpPs)
