# SPDX-License-Identifier: GPL-2.0
"""What the tests of the benchmark share: TAP, and the systems it has to measure."""

SYSTEMS = {"ATP, switch", "ATP, PS alone", "Gloo, ring",
           "Gloo, halving-doubling", "Open MPI", "TCP, PS"}

_results = []


def result(ok, what):
    _results.append(bool(ok))
    print(f"{'ok' if ok else 'not ok'} {len(_results)} {what}", flush=True)


def finish():
    """At the end; returns the exit status."""
    print(f"1..{len(_results)}")
    return not all(_results)
