#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""atp perf: on the hosts of a job, alone and beside other systems.  How fast they
are is not looked at."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
from doc_blocks import named, told  # noqa: E402
from live import (  # noqa: E402
    JOB, LIMIT, TOP, WORKERS, expect, lay_out, rack, tell, wait_for,
)
from rack import inside, run  # noqa: E402

ATP = os.path.join(TOP, "build/bin/atp")
BYTES, ROUNDS = 10000, 5
LONG = 100000
# seconds for a line of the texts, on a kernel that finds bugs
LONG_ONE = 5 * LIMIT
KEYS = named("atp-perf.8", "OUTPUT")
# What a remote shell is on real hosts.  Open MPI tells hosts apart by name.
AGENT = """#!/bin/bash
host=w$((${1##*.} - 1))
shift
exec nsenter --net="/run/netns/atp-$host" -- unshare --uts \\
	bash -c "hostname $host; $*"
"""


def start(rank, command, env=None):
    with inside(f"w{rank}"):
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={"ATP_PERF_DIR": os.path.join(TOP, "build/perf"),
                 **os.environ, **(env or {})})


def perf(rank, *words, env=None, rounds=ROUNDS, options=("-json",)):
    return start(rank, [ATP, *options, "perf", "job", str(JOB), "rank", str(rank),
                        "bytes", str(BYTES), "rounds", str(rounds), *words], env)


def end(process, limit=LIMIT):
    output, errors = process.communicate(timeout=limit)
    return process.returncode, output, errors


def together(*words, **more):
    ends = [end(process) for process in
            [perf(rank, *words, **more) for rank in range(WORKERS)]]
    for status, _, errors in ends:
        expect((status, errors if status else ""), (0, ""))
    return ends


def sane(line, rank, system):
    expect(set(line), KEYS)
    expect([line[key] for key in ("system", "job", "rank", "workers", "bytes",
                                  "rounds")],
           [system, JOB, rank, WORKERS, BYTES, ROUNDS])
    expect(0 < line["low_Bps"] <= line["median_Bps"] <= line["high_Bps"], True)


def all_ranks_tell_their_rounds():
    lay_out()
    before = tell("ps", "stats", "job", JOB)[0]["counters"]["runs"]
    for rank, (_, output, errors) in enumerate(together()):
        line, = json.loads(output)
        sane(line, rank, "atp")
        expect(f"atp: round {ROUNDS} of {ROUNDS}" in errors, True)
    counters = tell("ps", "stats", "job", JOB)[0]["counters"]
    expect((counters["runs"], counters["aborts"]), (before + 1, 0))
    # a round of 41 fragments that is not timed, and the others
    expect(counters["completed"], 41 * (ROUNDS + 1))


def people_read_megabytes():
    for _, output, _ in together(options=()):
        expect(output.startswith(f"atp: job {JOB} rank "), True)
        expect("MB/s: median " in output and "CPU s/GB: host " in output, True)


def beside_gloo():
    for rank, (_, output, _) in enumerate(together("vs", "gloo")):
        lines = json.loads(output)
        for line, system in zip(lines, ("atp", "gloo"), strict=True):
            sane(line, rank, system)


def beside_mpi():
    """Rank 0 starts it everywhere."""
    with tempfile.NamedTemporaryFile("w", suffix=".sh", delete=False) as agent:
        agent.write(AGENT)
    os.chmod(agent.name, 0o755)
    ends = together("vs", "mpi", env={
        "OMPI_MCA_plm_rsh_agent": agent.name,
        "OMPI_MCA_btl_tcp_if_include": "10.0.0.0/24",
        "OMPI_MCA_oob_tcp_if_include": "10.0.0.0/24",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
    })
    os.unlink(agent.name)
    lines = json.loads(ends[0][1])
    for line, system in zip(lines, ("atp", "mpi"), strict=True):
        sane(line, 0, system)
    expect(len(json.loads(ends[1][1])), 1)
    expect("mpi: rank 0 starts it" in ends[1][2], True)


def where_the_other_system_is_missing():
    with tempfile.TemporaryDirectory() as nothing:
        for name, package in (("gloo", "libgloo-dev"),
                              ("mpi", "libopenmpi-dev")):
            ends = [end(process) for process in
                    [perf(rank, "vs", name, env={"ATP_PERF_DIR": nothing})
                     for rank in range(WORKERS)]]
            expect((ends[0][0], package in ends[0][2]), (1, True))
            # what was measured before is still told
            sane(json.loads(ends[0][1])[0], 0, "atp")


def a_program_that_tells_nothing_has_failed():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "perf-gloo")
        with open(path, "w", encoding="ascii") as f:
            f.write("#!/bin/sh\necho 17\n")
        os.chmod(path, 0o755)
        for status, _, errors in [
                end(process) for process in
                [perf(rank, "vs", "gloo", env={"ATP_PERF_DIR": folder})
                 for rank in range(WORKERS)]]:
            expect((status, "gloo has failed" in errors), (1, True))


def who_loses_a_rank_says_which():
    survivor, victim = perf(0, rounds=LONG), perf(1, rounds=LONG)

    def completed():
        return tell("ps", "stats", "job", JOB)[0]["counters"]["completed"]
    before = completed()
    wait_for(lambda: completed() > before + 100, "rounds")
    victim.send_signal(signal.SIGKILL)
    victim.communicate()
    status, _, errors = end(survivor)
    expect((status, "Error: job 7: " in errors, "1" in
            errors.split("Error: ")[1]), (1, True, True))


def ranks_and_jobs_that_there_are_not():
    with inside("w0"):
        for words, want in ((("job", JOB, "rank", WORKERS), 1),
                            (("job", 99, "rank", 0), 2)):
            done = subprocess.run([ATP, "perf", *map(str, words)],
                                  stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True,
                                  check=False, timeout=LIMIT)
            expect((done.returncode, done.stdout), (want, ""))
            expect(done.stderr.startswith("Error: "), True)


def as_the_texts_say():
    """On each worker its rank, in a job as it comes.  The texts do not say that a
    switch adds; in this rack it would only take longer."""
    rack("job_del", JOB)
    rack("switch_off")
    rack("job_add", JOB, WORKERS, 4)
    path = f"{os.path.dirname(ATP)}:{os.environ['PATH']}"
    lines = told(r"atp perf .*")
    expect(len(lines) > 1, True)
    for line in lines:
        print("#", line, flush=True)
        systems = ["atp", *re.findall(r" vs (\w+)", line)]
        processes = [start(rank, ["bash", "-c", line.replace("rank 0",
                                                             f"rank {rank}")],
                           {"PATH": path}) for rank in range(WORKERS)]
        for rank, process in enumerate(processes):
            status, output, errors = end(process, LONG_ONE)
            expect((status, errors if status else ""), (0, ""))
            expect(re.findall(r"^(\w+): job (\d+) rank (\d+) ", output, re.M),
                   [(system, str(JOB), str(rank)) for system in systems])


if __name__ == "__main__":
    try:
        code = run((
            all_ranks_tell_their_rounds,
            people_read_megabytes,
            beside_gloo,
            beside_mpi,
            where_the_other_system_is_missing,
            a_program_that_tells_nothing_has_failed,
            who_loses_a_rank_says_which,
            ranks_and_jobs_that_there_are_not,
            as_the_texts_say,
        ))
    finally:
        rack("down")
    sys.exit(code)
