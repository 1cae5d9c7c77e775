#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""What Documentation/locking.rst and the comments say of locks, against the
code: what a comment says that a function needs is asserted in it, what is read
with READ_ONCE() is in the document's list.  A read that lacks both lock and
READ_ONCE() is not seen here; KCSAN (make check-debug) finds those that race."""
import glob
import os
import re
import sys

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
# a comment, if there is one, and the function behind it
FUNCTION = re.compile(r"(?:/\*((?:(?!\*/).)*)\*/\n)?"
                      r"^((?:static )?\w[^\n;{}#]*\b(\w+)\((?:[^;{}]*)\)"
                      r"(?:\n\t__must_hold\([^\n]*\))*)\n\{\n(.*?)^\}",
                      re.M | re.S)
# "Context: ..." and what has to be in the function for it
NEEDS = (
    (r"\bsocket lock\b", "sock_owned_by_me("),
    (r"\batp_net\.lock held\b", "lockdep_assert_held("),
    (r"\bbottom halves off\b", "lockdep_assert_in_softirq("),
    (r"^RCU\.", "RCU_LOCKDEP_WARN("),
)
# what takes or releases it is no function that needs it
NOT = r"takes the socket lock|no lock|without lock|about to release"


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def functions():
    """(file:name, what its comment says of the context, head, body)"""
    for path in sorted(glob.glob(os.path.join(TOP, "kernel/*.c"))):
        for m in FUNCTION.finditer(read(path)):
            comment = re.sub(r"\s*\n \*\s*", " ", m[1] or "")
            context = re.search(r"Context: (.*?\.)(?:\s|$)", comment)
            yield (f"{os.path.basename(path)}: {m[3]}",
                   context[1] if context else "", m[2], m[4])


def not_asserted():
    for name, context, head, body in functions():
        if not re.search(NOT, context):
            for said, needed in NEEDS:
                if re.search(said, context) and needed not in body:
                    yield f"{name}: {context} {needed}) is not there"
        if "__must_hold" in head and "lockdep_assert_held(" not in body:
            yield f"{name}: __must_hold() alone"


def not_listed():
    listed = read(os.path.join(TOP, "Documentation/locking.rst"))
    listed = listed.split("\nLockless reads\n")[1].split("\nShutdown\n")[0]
    words = set(re.findall(r"\w+", " ".join(re.findall(r"``(.*?)``", listed))))
    for name, _, _, body in functions():
        for read_of in re.findall(r"READ_ONCE\(((?:[^()]|\([^()]*\))*)\)", body):
            field = re.findall(r"\w+", re.sub(r"\[.*\]$", "", read_of))[-1]
            if field not in words:
                yield f"{name}: {field}"


def main():
    print("TAP version 13")
    print("1..3")
    contexts = [c for _, c, _, _ in functions() if c]
    results = (
        ("there are comments that say what a function needs",
         [] if len(contexts) > 30 else [f"{len(contexts)} of them"]),
        ("what is needed is asserted", list(not_asserted())),
        ("what is read with READ_ONCE() is in locking.rst", list(not_listed())),
    )
    for n, (what, wrong) in enumerate(results, 1):
        print(f"{'not ' if wrong else ''}ok {n} {what}")
        for line in wrong:
            print("#", line)
    sys.exit(any(wrong for _, wrong in results))


if __name__ == "__main__":
    main()
