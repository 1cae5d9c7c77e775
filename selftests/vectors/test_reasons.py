#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Every reason for which a packet is dropped has a test: a vector, or the test
that the file "elsewhere" names."""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SUITES = os.path.dirname(HERE)
DROPS = os.path.join(SUITES, "../kernel/engine/drop.h")


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as f:
        return f.read()


def lines(name):
    """Words of each line that is no comment"""
    return [line.split() for line in read(HERE, name).splitlines()
            if line and not line.startswith("#")]


def runs(suite, program):
    """Is it in the suite's list of tests?"""
    program = program.removesuffix(".c")
    return re.search(rf"^[^#\s]\S* (timeout=\d+ )?{re.escape(program)}\b",
                     read(SUITES, suite, "tests"), re.M)


def body(text, name):
    """What the function called name, in C or Python, consists of"""
    found = re.search(rf"^(?:TEST\({name}\)\n\{{|def {name}\(.*:)\n"
                      r"((?:[ \t].*\n|\n)*)", text, re.M)
    return found[1] if found else ""


def tested(reason, vectors, elsewhere):
    """What is missing, or None"""
    if reason in vectors:
        return "is in elsewhere, too" if reason in elsewhere else None
    if reason not in elsewhere:
        return "has neither a vector nor a line in elsewhere"
    path, name = elsewhere[reason]
    suite, program = path.split("/")
    if not os.path.exists(os.path.join(SUITES, path)):
        return f"{path} is not there"
    if not runs(suite, program):
        return f"{path} is not run"
    text = read(SUITES, path)
    # the counter may be looked at by a function that the test calls
    if not body(text, name):
        return f"{path} has no test {name}"
    if not re.search(rf"\b(drop_)?{reason}\b", text):
        return f"{path} does not look at it"
    return None


def main():
    drops = read(DROPS)
    reasons = re.findall(r'^\tX\([A-Z]+,\s*"([a-z]+)"', drops, re.M)
    vectors = {words[2] for words in lines("packets") if words[0] != "job"}
    elsewhere = {words[0]: words[1:] for words in lines("elsewhere")}
    unknown = (vectors | set(elsewhere)) - set(reasons) - {"ok"}
    print("TAP version 13")
    failed = 0
    results = [(reason, tested(reason, vectors, elsewhere))
               for reason in reasons]
    results.append(("all reasons were found",
                    None if len(reasons) == drops.count("\tX(") > 20 else
                    f"{len(reasons)} of them"))
    results.append(("no other reason is named",
                    f"{unknown}" if unknown else None))
    print(f"1..{len(results)}")
    for n, (what, missing) in enumerate(results, 1):
        failed += missing is not None
        print(f"{'not ' if missing else ''}ok {n} {what}")
        if missing:
            print("#", missing)
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
