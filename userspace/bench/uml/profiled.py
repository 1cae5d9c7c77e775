#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""One system of the benchmark, for profile_bed.py, which samples from outside;
run in User-mode Linux (run.py).

usage: profiled.py SYMBOLS SYSTEM PAYLOAD then as bench.py

Says when a measurement begins and when it ends, and leaves in SYMBOLS what the
kernel's functions are called, those of atp.ko and of the switch's program, too.
"""
import pathlib
import sys

import bench

BEGIN, END = "profile: begin", "profile: end"


def profiled(kind, symbols):
    class Profiled(kind):
        def ask(self, line, word):
            if not line.startswith("go "):
                return super().ask(line, word)
            print(BEGIN, flush=True)
            said = super().ask(line, word)
            print(END, flush=True)
            # now, as the program is not there for ever
            symbols.write_bytes(pathlib.Path("/proc/kallsyms").read_bytes())
            return said

    return Profiled


def main():
    symbols, name, payload = sys.argv[1:4]
    del sys.argv[1:4]
    kinds = {kind.name: kind for kind in bench.SYSTEMS}
    if name not in kinds or int(payload) not in bench.MTUS:
        sys.exit(f"SYSTEM is one of {', '.join(map(repr, kinds))}, and PAYLOAD "
                 f"one of {', '.join(map(str, bench.MTUS))}")
    bench.SYSTEMS = (profiled(kinds[name], pathlib.Path(symbols)),)
    bench.MTUS = {int(payload): bench.MTUS[int(payload)]}
    pathlib.Path("/proc/sys/net/core/bpf_jit_kallsyms").write_text("1")
    bench.main()


if __name__ == "__main__":
    main()
