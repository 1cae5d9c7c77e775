#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""What README, man pages and Documentation/*.rst say that cannot be typed, as
test_texts.py does with the rest: structures, targets of make, errnos."""

import os
import re
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [here, os.path.join(here, "../lib")]
from doc_blocks import TOP, blocks, mentioned  # noqa: E402
from rack import run  # noqa: E402

MAN, RST = "Documentation/man/", "Documentation/"


def expect(got, want):
    if got != want:
        raise AssertionError(f"{got!r}, not {want!r}")


def compiles(text):
    with tempfile.NamedTemporaryFile("w", suffix=".c") as f:
        f.write(text)
        f.flush()
        done = subprocess.run(
            ["cc", "-Wall", "-Werror", "-fsyntax-only",
             "-I", os.path.join(TOP, "uapi"), f.name],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            check=False)
    expect((done.returncode, done.stdout), (0, ""))


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
    compiles("\n".join([
        "#include <stddef.h>", "#include <linux/atp.h>",
        text.replace(theirs, ours), *checks, "int main(void) { return 0; }"]))


def structures_are_those_of_the_headers():
    found = [text for _, text in blocks() if re.match(r"struct \w+ {", text)]
    expect(len(found), 2)
    for text in found:
        same_struct(text)


def what_is_made_has_a_target():
    with open(os.path.join(TOP, "Makefile"), encoding="utf-8") as f:
        targets = set(" ".join(re.findall(r"^([a-z -]+):", f.read(),
                                          re.M)).split())
    told = [text for _, text in (*blocks(), *mentioned())]
    made = {target for text in told
            for target in re.findall(r"\bmake ([a-z-]+)", text)}
    expect(("demo" in made, made - targets), (True, set()))


def the_table_of_errnos_has_those_of_the_pages():
    def read(name):
        with open(os.path.join(TOP, name), encoding="ascii") as f:
            return f.read()
    known = set()
    for page in ("atp.7", "libatp.3"):
        known |= set(re.findall(r"^\.It Bq Er (E\w+)$", read(MAN + page),
                                re.M))
    table = set(re.findall(r"^(E[A-Z]+) ", read(RST + "operations.rst"), re.M))
    expect((len(table) > 10, table - known), (True, set()))


if __name__ == "__main__":
    sys.exit(run((
        structures_are_those_of_the_headers,
        what_is_made_has_a_target,
        the_table_of_errnos_has_those_of_the_pages,
    )))
