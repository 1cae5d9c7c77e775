# SPDX-License-Identifier: GPL-2.0
"""A rack that the tools can look at: two workers, a switch, a job."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(here, "../lib"), os.path.join(here, "../rack")]
import kmod  # noqa: E402
from rack import TOP, atp, rack  # noqa: E402

JOB = 7
WORKERS = 2
# bytes and lanes of a fragment
FRAGMENT, LANES = 248, 62
LIMIT = 120
MODPROBE = "/proc/sys/kernel/modprobe"


def expect(got, want):
    if got != want:
        raise AssertionError(f"{got!r}, not {want!r}")


def wait_for(condition, what):
    """Poll; the bound is only for what never comes."""
    end = time.monotonic() + LIMIT
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"no {what}")
        time.sleep(0.05)


def text(host, *words):
    status, output = atp(host, *words)
    expect((status, output if status else ""), (0, ""))
    return output


def tell(host, *words):
    """What the tool says, as JSON."""
    return json.loads(text(host, "-json", *words))


@contextlib.contextmanager
def without_module(*hosts):
    """It is held by the jobs of these hosts, and loads by itself."""
    for host in hosts:
        for shown in tell(host, "job", "show"):
            text(host, "job", "del", shown["id"])
    with open(MODPROBE, encoding="ascii") as f:
        was = f.read()
    try:
        with open(MODPROBE, "w", encoding="ascii") as f:
            f.write("/bin/false")
        kmod.unload()
        yield
    finally:
        with open(MODPROBE, "w", encoding="ascii") as f:
            f.write(was)
        subprocess.run(["modprobe", "atp"], check=True)


def lay_out():
    """With few aggregators, so that some fragments find none."""
    rack("up", WORKERS, 1500)
    rack("switch_on", "aggregators", 8)
    rack("job_add", JOB, WORKERS, 4, "fragment", FRAGMENT)


def start_run(*words):
    """All ranks, each sum compared with what it should be."""
    return subprocess.Popen(
        [os.path.join(TOP, "build/selftests/rack/worker"),
         "--job", str(JOB), "--workers", str(WORKERS),
         "--netns", "atp-w", "--limit", str(LIMIT), *map(str, words)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )


def end_run(process):
    output, _ = process.communicate(timeout=2 * LIMIT)
    if process.returncode:
        raise AssertionError(output)


def kill_run(process):
    """One that would go on for long; it has processes of its own."""
    if process.poll() is not None:
        raise AssertionError(process.communicate()[0])
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def a_run(*words):
    end_run(start_run(*words))
