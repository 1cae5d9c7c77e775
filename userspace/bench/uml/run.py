#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Run a command in User-mode Linux: a kernel as a program of this machine,
whose code runs at the machine's own speed.

usage: run.py [--timeout S] [--mem MIB] OUT LOG COMMAND...

The command sees this machine's files, which it cannot change, and an empty
/run; what it leaves in OUT stays.  Its output comes as it is said; LOG gets the
kernel's.  Exit status: the command's; 97 if the kernel's log holds a warning,
124 after S seconds, 125 if the kernel did not come up or went down too early.

On /dev/ttyS0 the command can ask how much CPU time all of this has taken of the
machine so far: for each line it gets one with seconds in programs and kernel
(of User-mode Linux), which are those at native speed, and the seconds that the
machine's kernel took to let one be the other.
"""
import argparse
import contextlib
import os
import pathlib
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[2]
KERNEL = TOP / "build/kernels/uml"
TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds(leader):
    """(user, system) of a session's processes, those that have ended too."""
    user = system = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii",
                      errors="replace") as f:
                fields = f.read().rpartition(")")[2].split()
        except OSError:     # it has ended
            continue
        if int(fields[3]) != leader:
            continue
        user += int(fields[11]) + int(fields[13])
        system += int(fields[12]) + int(fields[14])
    return user / TICK, system / TICK


def answer(port, leader):
    """Until nobody is left to ask."""
    with contextlib.suppress(OSError), port.makefile("rw") as lines:
        for _ in lines:
            lines.write("{:.2f} {:.2f}\n".format(*cpu_seconds(leader)))
            lines.flush()


def boot(args, folder):
    """Runs until it halts, or until its time is up: False.  On one of the machine's
    CPUs: kernel and programs take turns, and on two they would have cold caches."""
    ours, theirs = socket.socketpair()
    words = [
        "taskset", "--cpu-list", max(os.sched_getaffinity(0)),
        KERNEL / "vmlinuz", f"mem={args.mem}M",
        "root=host", "rootfstype=hostfs", "rootflags=/", "ro",
        f"init={HERE}/init.sh", "quiet", "panic=-1", "con=null",
        "con0=null,fd:1", "ssl=null",
        f"ssl0=fd:{theirs.fileno()},fd:{theirs.fileno()}",
        f"ATP_TOP={TOP}", f"ATP_RUN={folder}", f"ATP_OUT={args.out}",
    ]
    with ours, theirs, subprocess.Popen(
            list(map(str, words)), stdin=subprocess.DEVNULL,
            pass_fds=(theirs.fileno(),), start_new_session=True) as process:
        threading.Thread(target=answer, args=(ours, process.pid),
                         daemon=True).start()
        try:
            process.wait(args.timeout)
            return True
        except subprocess.TimeoutExpired:
            return False
        finally:
            # the programs in it are processes, too
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def said(path):
    return path.read_text(errors="replace") if path.exists() else ""


def status_of(args, folder):
    """After the end; what it has said is brought to its place."""
    log = folder / "dmesg"
    args.log.parent.mkdir(parents=True, exist_ok=True)
    args.log.write_text(said(log))
    if not said(folder / "status"):
        print("run.py: the kernel went down before the command ended",
              file=sys.stderr)
        return 125
    splat = subprocess.run([TOP / "selftests/vm/splat.sh", log], check=False)
    return int(said(folder / "status")) or (97 if splat.returncode else 0)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--timeout", type=int, default=600)
    parser.add_argument("--mem", type=int, default=8192)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("log", type=pathlib.Path)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    # who is ended takes it along
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    args.out = args.out.resolve()
    args.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="uml.") as name:
        folder = pathlib.Path(name)
        (folder / "command").write_text(
            f"cd {shlex.quote(str(TOP))} && exec {shlex.join(args.command)}\n")
        if not boot(args, folder):
            print(f"run.py: TIMEOUT after {args.timeout} s", file=sys.stderr)
            return 124
        return status_of(args, folder)


if __name__ == "__main__":
    sys.exit(main())
