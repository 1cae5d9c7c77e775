#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What the members of the rack's benchmark share: a sum that is wrong by one bit
is seen, wherever it is."""
import pathlib
import socket
import subprocess
import sys
import tempfile

from results import finish, result

TOP = pathlib.Path(__file__).resolve().parents[2]
PLANTED = TOP / "build/selftests/bench/planted"
LIMIT = 120


def talk(lines, *words):
    """What a member answers to each line, and its exit status."""
    with tempfile.TemporaryDirectory() as tmp, \
            socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{tmp}/s")
        listener.listen()
        listener.settimeout(LIMIT)
        with subprocess.Popen([PLANTED, f"{tmp}/s", *map(str, words)]) as p:
            conn = listener.accept()[0]
            conn.settimeout(LIMIT)
            with conn, conn.makefile("rw", encoding="ascii") as file:
                answers = [file.readline().split()]
                for line in lines:
                    file.write(line + "\n")
                    file.flush()
                    answers.append(file.readline().split())
            return answers, p.wait(LIMIT)


def sums(size, tensors, seed, wrong, lane):
    answers, status = talk((f"fill {size} {tensors} {seed}", "go 0", "check"),
                           wrong, lane)
    hello, ready, done, verdict = answers
    if hello[:2] != ["hello", "0"] or ready != ["ready"] or \
            done[0] != "done" or status:
        raise AssertionError(f"{answers}, exit status {status}")
    return verdict


def main():
    result(sums(1 << 20, 3, 5, 3, 0) == ["right"], "right sums are right")
    for size, tensors, tensor, lane in (
            (4, 1, 0, 0), (8192, 1, 0, 2047), (1 << 20, 1, 0, 0),
            (1 << 20, 1, 0, 65536), (1 << 20, 1, 0, 65537),
            (1 << 20, 2, 1, 131073), (1 << 20, 4, 3, (1 << 18) - 1)):
        verdict = sums(size, tensors, 77, tensor, lane)
        result(verdict[:5] == ["wrong", "tensor", str(tensor), "lane",
                               f"{lane}:"],
               f"{tensors} of {size} bytes, lane {lane} of {tensor} is wrong")
    answers, status = talk(("sum it up",), 0, 0)
    result(answers[1] == [] and status == 1, "what makes no sense is refused")
    return finish()


sys.exit(main())
