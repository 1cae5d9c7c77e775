#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Every block of README, man pages and Documentation/*.rst: programs are
compiled, Python is read, and each line for the tool is given to it, which knows
its words.  What another test runs is said here.  A block of which nothing is
known fails this test."""

import ast
import ctypes
import os
import re
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [here, os.path.join(here, "../lib"),
                os.path.join(here, "../../userspace/python")]
from doc_blocks import TOP, blocks  # noqa: E402

os.environ.setdefault("LIBATP", os.path.join(TOP, "build/lib/libatp.so.1"))
import atp  # noqa: E402
from rack import run  # noqa: E402

TOOL = os.path.join(TOP, "build/bin/atp")
# what "make install" leaves, made by the Makefile
ROOT = os.path.join(TOP, "build/selftests/tools/root")
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
LIMIT = 120
PORTS = 5


def expect(got, want):
    if got != want:
        raise AssertionError(f"{got!r}, not {want!r}")


def shell(line, **env):
    done = subprocess.run(["bash", "-c", line], env={**os.environ, **env},
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False,
                          timeout=LIMIT)
    return done.returncode, done.stdout


# Commands -------------------------------------------------------------------

# Lines that are not for the tool, and where they are run instead
OTHERS = {
    "modprobe atp": "tools/test_module.sh loads it by a socket and by name",
    "rmmod atp": "lifecycle/test_unload.py",
    "mount -t bpf bpf /sys/fs/bpf": "switch/: a switch mounts it if need be",
    "ethtool -K eth0 gro on tx off": "lib/rack.sh, for every rack",
    "job 7 stalled fragment 118 since 1.2s": "what the line before shows",
    "waits for worker 1 10.0.0.2": "likewise",
}
# They go on for ever: their words are looked at alone.
ENDLESS = {"atp top", "atp monitor", "atp -timestamp monitor"}


def lines_of(text):
    """Continued lines are one, prompts and explanations are none."""
    for line in re.sub(r" *\\\n\s*", " ", text).splitlines():
        if line:
            # three columns and more are before an explanation
            line = re.sub(r"(?<=\S)   .*$", "", re.sub(r"^# ", "", line))
            yield re.sub(r"\s+", " ", line).strip()


def words_are_known(line):
    """To the tool, in a namespace where nothing is: whether it can do that
    is another matter, but the words may not be what is wrong."""
    if line in ENDLESS:
        line += " help"
    # a user of the texts, not of this machine
    line = line.replace("uid alice", "uid nobody")
    status, output = shell(line.replace("atp ", f"{TOOL} ", 1))
    # 1: atp check has found something bad
    good = {0, 1, 2} if line.startswith("atp check") else {0, 2}
    if status not in good:
        raise AssertionError(f"{line}: status {status}: {output}")


def commands(text):
    for line in lines_of(text):
        if line not in OTHERS:
            words_are_known(line)


# Programs -------------------------------------------------------------------

folder = tempfile.TemporaryDirectory()
written = {}


def compile_c(text, line="cc -Wall -Werror -o program program.c "
              "$(pkg-config --cflags --libs libatp)", name="program"):
    with open(os.path.join(folder.name, f"{name}.c"), "w",
              encoding="utf-8") as f:
        f.write(text)
    status, output = shell(
        f"cd {folder.name} && rm -f {name} && {line} && test -x {name}",
        PKG_CONFIG_PATH=f"{ROOT}/usr/local/lib/pkgconfig",
        PKG_CONFIG_SYSROOT_DIR=ROOT,
        PKG_CONFIG_ALLOW_SYSTEM_CFLAGS="1", PKG_CONFIG_ALLOW_SYSTEM_LIBS="1")
    expect((status, output), (0, ""))


def c_program(text):
    written["program"] = text
    compile_c(text)


def the_compile_line(line):
    """Of the program that is before it."""
    compile_c(written["program"], line, "average")


def c_fragment(begin):
    """Lines of a function in which there are these names."""
    def how(text):
        lines = text.splitlines()
        includes = [line for line in lines if line.startswith("#include")]
        compile_c("\n".join([
            *includes, "#include <atp.h>", begin,
            # three dots are for the reader to fill in
            *(re.sub(r"^\s*\.\.\.", ";", line) for line in lines
              if line not in includes),
            "return 0;", "}", "int main(void) { (void)reduce; return 0; }"]))
    return how


def same_struct(text):
    """A structure in a text is that of the header."""
    name, = re.findall(r"struct (\w+)", text)
    fields = re.findall(r"__u\d+ (\w+)", text)
    expect(len(fields) > 3, True)
    ours, theirs = f"struct text_{name}", f"struct {name}"
    checks = [f'_Static_assert(sizeof({ours}) == sizeof({theirs}), "size");']
    for field in fields:
        checks.append(
            f"_Static_assert(offsetof({ours}, {field}) == "
            f"offsetof({theirs}, {field}) && "
            f"sizeof((({ours} *)0)->{field}) == "
            f'sizeof((({theirs} *)0)->{field}), "{field}");')
    compile_c("\n".join([
        "#include <stddef.h>", "#include <linux/atp.h>",
        text.replace(theirs, ours), *checks, "int main(void) { return 0; }"]))


def python(text):
    """It can be read, and what it wants of the module is there."""
    owners = {"atp": atp, "job": atp.Job, "request": atp.Request,
              "h": atp.Request}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and \
                isinstance(node.value, ast.Name) and node.value.id in owners:
            expect((ast.unparse(node),
                    hasattr(owners[node.value.id], node.attr)),
                   (ast.unparse(node), True))


# What is neither ------------------------------------------------------------

def picture(text):
    """Or a list: nothing to do."""
    expect(re.findall(r"^(?:# )?(?:atp|make|cc|ip|ethtool|modprobe) .*", text,
                      re.M), [])


def elsewhere(test, has):
    """It is run by another test, which has these words."""
    def how(_):
        with open(os.path.join(TOP, "selftests", test),
                  encoding="utf-8") as f:
            expect((test, has in f.read()), (test, True))
    return how


def makes(text):
    """This test is a part of what these run; the targets are there."""
    with open(os.path.join(TOP, "Makefile"), encoding="utf-8") as f:
        targets = re.findall(r"^([a-z-]+):", f.read(), re.M)
    for target in re.findall(r"make ([a-z-]+)", text):
        expect((target, target in targets), (target, True))


MAN, RST = "Documentation/man/", "Documentation/"
# What cannot be told from the block itself: its file, how it begins, and what
# is done with it
HOW = (
    ("README", "worker            worker", picture),
    ("README", "uapi/            what", picture),
    (RST + "switch.rst", "Ethernet, IPv4 or IPv6", picture),
    ("README", "make ", makes),
    ("README", "model = Distributed", elsewhere("torch/rank.py",
                                                "atp.torch.attach(")),
    ("README", "#include <atp.h>", c_fragment(
        "static int reduce(unsigned int rank, float *gradient, size_t count)\n"
        "{")),
    (RST + "api.rst", "struct atp_request *r", c_fragment(
        "static int reduce(struct atp *atp, float layer[2][1000])\n{")),
    (RST + "api.rst", "cc -o average average.c", the_compile_line),
    (RST + "tracing.rst", "echo 1 >/sys/kernel/tracing", elsewhere(
        "socket/test_module.py", "unload_is_safe_after_tracing")),
    (RST + "tracing.rst", "bpftrace -e '", elsewhere("tools/test_bpftrace.py",
                                                     "tracing.rst")),
    (RST + "tracing.rst", "tshark -X lua_script:", elsewhere("tools/pcap.py",
                                                             "atpgrad.lua")),
)


def is_python(text):
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return False
    return any(isinstance(node, (ast.Import, ast.With))
               for node in ast.walk(tree))


def how_to(file, text):
    for where, first, how in HOW:
        if file == where and text.startswith(first):
            return how
    if all(line in OTHERS or line.startswith("atp ")
           for line in lines_of(text)):
        return commands
    if re.match(r"struct \w+ {", text):
        return same_struct
    if "int main(" in text:
        return c_program
    return python if is_python(text) else None


def every_block_works():
    wrong = []
    for file, text in blocks():
        first = f"{file}: {text.splitlines()[0]}"
        how = how_to(file, text)
        if not how:
            wrong.append(f"{first}: nothing is known of this")
            continue
        try:
            how(text)
        except (AssertionError, OSError) as e:
            wrong.append(f"{first}: {e}")
    expect(wrong, [])


def what_is_unknown_is_told():
    for text in ("frobnicate", "atp job show\nfrobnicate", "a | b\n| c |"):
        expect((text, how_to("README", text)), (text, None))


def a_wrong_word_is_noticed():
    for line in ("atp job frob 7", "atp job add 7 ps ::1 wroker ::1",
                 "atp stats promethues", "atp frob",
                 "atp switch attach dev eth0 aggregatros 5", "atp check 7"):
        try:
            words_are_known(line)
        except AssertionError:
            continue
        raise AssertionError(f"not noticed: {line}")


def the_table_of_errnos_has_those_of_the_pages():
    """And that of a reason nobody knows."""
    def read(name):
        with open(os.path.join(TOP, name), encoding="ascii") as f:
            return f.read()
    known = {"ECONNABORTED"}
    for page in ("atp.7", "libatp.3"):
        known |= set(re.findall(r"^\.It Bq Er (E\w+)$", read(MAN + page),
                                re.M))
    table = set(re.findall(r"^(E[A-Z]+) ", read(RST + "operations.rst"), re.M))
    expect((len(table) > 10, table - known), (True, set()))


def an_empty_place():
    """A namespace with the ports of the texts, which ends with this process."""
    flags = CLONE_NEWNET | (CLONE_NEWUSER if os.geteuid() else 0)
    if ctypes.CDLL(None, use_errno=True).unshare(flags):
        raise OSError(ctypes.get_errno(), "unshare")
    for number in range(PORTS):
        subprocess.run(["ip", "link", "add", f"eth{number}", "type", "veth",
                        "peer", "name", f"peer{number}"], check=True)


if __name__ == "__main__":
    an_empty_place()
    try:
        code = run((
            every_block_works,
            what_is_unknown_is_told,
            a_wrong_word_is_noticed,
            the_table_of_errnos_has_those_of_the_pages,
        ))
    finally:
        # where BPF is allowed, some of the lines have attached it
        shell(f"{TOOL} switch detach")
    sys.exit(code)
