#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""What README, man pages and Documentation/*.rst tell the reader to type, typed
in the rack that they speak of, and the programs in them, run there.  What is
run by another test is said in text_rules.py.  A command of which nothing is known
fails this test, and so does a line of a table that is for none."""

import os
import re
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
import pcap  # noqa: E402
from doc_blocks import TOP, blocks, dialogue, mentioned  # noqa: E402
from live import expect, rack  # noqa: E402
from rack import run  # noqa: E402
from test_dissector import Capture  # noqa: E402
from text_keys import keys_of  # noqa: E402
from text_rack import (  # noqa: E402
    Program, State, Terminal, cover, every_rank, file_with, folder, lay_out, sh,
)
from text_rules import ELSEWHERE, PLACES, RULES  # noqa: E402

MAN, RST = "Documentation/man/", "Documentation/"

used = set()
state = None


def matching(table, line):
    for pattern in table:
        if re.fullmatch(pattern, line):
            used.add(pattern)
            return table[pattern]
    return None


def known(line):
    return matching(RULES, line) or matching(ELSEWHERE, line)


def batch():
    """A job comes and goes."""
    return file_with("batch", state.lines["atp job add"][len("atp "):] +
                     "\njob del 7\n")


def capture():
    """Packets of a run, and one of another version."""
    state.ensure("run")
    seen = Capture("w0")
    state.run.go_on()
    frames = seen.frames()
    strange = bytearray(frames[0])
    strange[42] += 1
    path = os.path.join(folder.name, "pcap")
    pcap.write(path, [*frames, bytes(strange)])
    return path


FILES = {"atp": batch, "tshark": capture}


def until_ended(host, line, rule):
    terminal = Terminal(host, line)
    try:
        terminal.shows(rule.shows, state.an_event if "monitor" in line
                       else state.run.go_on)
        terminal.end(rule.ends)
    finally:
        terminal.close()


def type_in(line, wanted=()):
    """A line of a text, as its rule says; what it shows, but for the time."""
    rule = matching(RULES, line)
    state.ensure(rule.needs)
    if " FILE" in line:
        line = line.replace("FILE", FILES[line.split()[0]]())
    print(f"# {rule.where}: {line}", flush=True)
    hosts = rule.where.split()
    if rule.where == "job":
        hosts = state.hosts(line if line.startswith("atp job add") else None)
    if rule.ends:
        until_ended(hosts[0], line, rule)
        state.on(hosts, rule.after)
        return
    for host, output in zip(hosts, state.do(hosts, line)):
        if not re.search(rule.shows, output, re.M):
            raise AssertionError(f"{host}: {line}: no {rule.shows} in "
                                 f"{output}")
        if wanted:
            expect([untimed(text) for text in output.splitlines()],
                   [untimed(text) for text in wanted])
    if rule.after:
        state.on(hosts, rule.after)


def untimed(text):
    return re.sub(r"\d+(\.\d+)?(ms|s|min)\b", "TIME", " ".join(text.split()))


# Programs -------------------------------------------------------------------

def c_program(name, text, line="cc -Wall -Werror -o program program.c "
              "$(pkg-config --cflags --libs libatp)"):
    """Its path."""
    place = os.path.join(folder.name, name)
    os.makedirs(place)
    source = re.search(r"\w+\.c", line)[0]
    with open(os.path.join(place, source), "w", encoding="utf-8") as f:
        f.write(text)
    expect(sh("bash", "-c", line, cwd=place), "")
    return os.path.join(place, source[:-2])


def each_rank_prints(path, want):
    state.ensure("alices_job")
    every_rank(lambda rank: lambda: os.execv(path, [path, "7", str(rank)]),
               want)


def c_fragment(begin, text, main):
    """Lines of a function, and who calls it."""
    lines = text.splitlines()
    includes = [line for line in lines if line.startswith("#include")]
    return "\n".join([
        "#include <atp.h>", "#include <stdio.h>", "#include <stdlib.h>",
        *includes, f"static int reduce({begin})", "{",
        # three dots are for the reader to fill in
        *(re.sub(r"^\s*\.\.\.", "return 1;", line) for line in lines
          if line not in includes),
        "return 0;", "}", "int main(int argc, char **argv)", "{",
        "unsigned int rank = atoi(argv[2]);", main, "return 0;", "}"])


def readme_c(text):
    each_rank_prints(c_program("readme", c_fragment(
        "unsigned int rank, float *gradient, size_t count", text, """
        float gradient[2] = { rank, 1 };
        if (reduce(rank, gradient, 2))
                return 1;
        printf("%g %g\\n", gradient[0], gradient[1]);""")), "6 4\n")


def layers(text):
    each_rank_prints(c_program("layers", c_fragment(
        "struct atp *atp, float layer[2][1000]", text, """
        static float layer[2][1000];
        struct atp *atp = atp_join(7, rank, 0);
        if (!atp)
                return 1;
        layer[0][999] = rank;
        layer[1][999] = 1;
        if (reduce(atp, layer))
                return 1;
        printf("%g %g\\n", layer[0][999], layer[1][999]);
        atp_leave(atp);""")), "6 4\n")


written = {}


def average_c(text):
    """The text has a line that builds it, too."""
    written["average.c"] = text


def average_is_built(line):
    each_rank_prints(c_program("average", written["average.c"], line), "1.5\n")


def socket_c(text):
    written["socket.c"] = text
    each_rank_prints(c_program("socket", text), "4 8 12\n")


def in_place_c(text):
    """That program, with these calls instead of its own."""
    program = written["socket.c"]
    for call in re.findall(r"^(?:send|recv)\(.*\)(?=;)", text, re.M):
        program, n = re.subn(call[:4] + r"\(fd, v, sizeof\(v\), 0\)", call,
                             program)
        expect((call, n), (call, 1))
    each_rank_prints(c_program("in_place", program), "4 8 12\n")


def libatp_c(text):
    each_rank_prints(c_program("libatp", text), "10 1\n")


def python(text, want, needs="alices_job"):
    code = compile(text, "text", "exec")

    def rank_does(rank):
        def do():
            sys.argv = ["text", "7", str(rank)]
            exec(code, {})    # as the reader does
        return do
    state.ensure(needs)
    every_rank(rank_does, want)


BEFORE = """
import sys, numpy
rank = int(sys.argv[2])
gradient, other = [numpy.full(1000, rank, t) for t in ("f", "i")]
"""
AFTER = "\nprint(gradient[999], other[999])\n"
readme = []


def with_arrays(text):
    readme.append(text)
    python(BEFORE + text + AFTER, "6.0 6\n")


def average_py(text):
    python(text, "1.5\n")


def serve(text):
    """What the optimiser makes of the sums is what all ranks get."""
    def do():
        exec(text, {"atp": __import__("atp"),    # as the reader does
                    "step": lambda first, sums: sums * 2})
    state.ensure("server")
    server = Program("ps", do, who=lambda: None)
    python(BEFORE + readme[0] + AFTER, "12.0 12\n", needs="")
    expect(server.end(), (0, ""))


def without_a_module(text):
    """It is rank 2 in the text."""
    expect("7, 2)" in text, True)
    python("import sys\n" + text.replace("7, 2)", "7, int(sys.argv[2]))") +
           "\nprint(list(total))\n", "[4.0, 8.0, 12.0]\n")


def attach(text):
    """Run by another test, which takes it from the README."""
    with open(os.path.join(TOP, "selftests/torch/rank.py"),
              encoding="utf-8") as f:
        expect("atp.torch.attach(" in text and
               "as_in_the_readme" in f.read(), True)


PROGRAMS = {
    ("README", "import atp, numpy"): with_arrays,
    ("README", "model = Distributed"): attach,
    ("README", "with atp.serve("): serve,
    ("README", "#include <atp.h>"): readme_c,
    (RST + "api.rst", "#include <errno.h>"): average_c,
    (RST + "api.rst", "cc -o average"): average_is_built,
    (RST + "api.rst", "struct atp_request *r"): layers,
    (RST + "api.rst", "import sys\n"): average_py,
    (RST + "api.rst", "#include <stdio.h>\n#include <stdlib.h>\n#include "
     "<sys/socket.h>"): socket_c,
    (RST + "api.rst", "send(fd, v"): in_place_c,
    (MAN + "atp.7", "import array"): without_a_module,
    (MAN + "libatp.3", "#include <stdio.h>"): libatp_c,
    (MAN + "libatp.3", "import atp\n"): with_arrays,
    (MAN + "libatp.3", "with atp.serve("): serve,
}
# Pictures, lists and structures: tools/test_docs.py
NOTHING = (
    ("README", "worker            worker"),
    ("README", "uapi/            what"),
    (RST + "switch.rst", "Ethernet, IPv4 or IPv6"),
    # switch/service.py compares them
    (RST + "operations.rst", "[Service]"),
    (MAN + "atp-switch.8", "[Service]"),
    (MAN + "atp.7", "struct sockaddr_atp {"),
    (MAN + "atp.7", "struct atp_error {"),
)


def kind(file, text):
    """The program that it is, its lines, or None."""
    for table in (PROGRAMS, NOTHING):
        for key in table:
            if file == key[0] and text.startswith(key[1]):
                used.add(key)
                return table[key] if table is PROGRAMS else ()
    lines = dialogue(text)
    return lines if all([known(line) for line, _ in lines]) else None


BLOCKS = [(file, text, kind(file, text)) for file, text in blocks()]
MENTIONED = [(file, line, known(line)) for file, line in
             ((file, re.sub(r"\b[A-Z]+\b", lambda m: PLACES.get(m[0], m[0]),
                            line)) for file, line in mentioned())]


def dialogues(file=None):
    return [each for name, _, what in BLOCKS
            if isinstance(what, list) and file in (None, name)
            for each in what]


def all_lines():
    return [line for line, _ in dialogues()]


def everything_is_known():
    wrong = [f"{file}: {line}" for file, text, what in BLOCKS
             if what is None for line, _ in dialogue(text) if not known(line)]
    lines = all_lines() + [line for _, line, how in MENTIONED if how]
    # the beginning of one that is run says which it is
    wrong += [f"{file}: {line}" for file, line, how in MENTIONED
              if not how and
              not any(other.startswith(line) for other in lines)]
    expect(wrong, [])


def every_line_of_a_table_is_for_something():
    expect([key for table in (RULES, ELSEWHERE, PROGRAMS, NOTHING)
            for key in table if key not in used], [])


def what_is_run_elsewhere_is_there():
    for test, words in ELSEWHERE.values():
        with open(os.path.join(TOP, "selftests", test),
                  encoding="utf-8") as f:
            expect((test, words in f.read()), (test, True))


def the_rack_comes():
    global state    # pylint: disable=global-statement
    cover()
    lay_out()
    state = State({start: next(line for line, _ in dialogues("README")
                               if line.startswith(start))
                   for start in ("atp job add", "atp switch attach",
                                 "atp switch job add")})


def lines_work(lines):
    wrong = []
    for line, wanted in lines:
        try:
            if not matching(ELSEWHERE, line):
                type_in(line, wanted)
        except (AssertionError, OSError, subprocess.TimeoutExpired) as e:
            wrong.append(f"{line}: {e!r}")
    state.reset()
    expect(wrong, [])


def commands_of(file):
    """A test of this name."""
    def test():
        lines_work(dialogues(file))
    test.__name__ = f"commands of {file}"
    return test


def commands_in_sentences():
    lines = all_lines()
    lines_work([(line, ()) for line in sorted(
        {line for _, line, how in MENTIONED if how} - set(lines))])


def keys_of_json_are_those_of_the_pages():
    wrong = keys_of(state)
    state.reset()
    expect(wrong, [])


def programs():
    wrong = []
    # once: it takes long
    __import__("atp")
    for file, text, what in BLOCKS:
        if not callable(what):
            continue
        print(f"# {file}: {text.splitlines()[0]}", flush=True)
        try:
            what(text)
        except (AssertionError, OSError) as e:
            wrong.append(f"{file}: {text.splitlines()[0]}: {e}")
    expect(wrong, [])


def what_does_not_work_is_noticed():
    for line in ("frobnicate", "atp job frob 7"):
        expect((line, kind("README", line)), (line, None))
    for line, wanted in (
            ("atp job add 7 ps 10.0.0.254 worker 10.0.0.1 uid alicia", ()),
            ("atp job add 7 ps 10.0.0.254 wroker 10.0.0.1", ()),
            ("atp switch attach dev eth0 dev eth7", ()),
            ("atp job stall", ["job 7 stalled fragment 119 since 1.2s",
                               "    waits for worker 1 10.0.0.2"])):
        try:
            type_in(line, wanted)
        except AssertionError:
            state.reset()
            continue
        raise AssertionError(f"not noticed: {line}")


if __name__ == "__main__":
    try:
        code = run((
            everything_is_known,
            every_line_of_a_table_is_for_something,
            what_is_run_elsewhere_is_there,
            the_rack_comes,
            *(commands_of(file) for file in
              dict.fromkeys(file for file, _, what in BLOCKS if what and
                            isinstance(what, list))),
            commands_in_sentences,
            keys_of_json_are_those_of_the_pages,
            programs,
            what_does_not_work_is_noticed,
        ))
    finally:
        rack("down")
    sys.exit(code)
