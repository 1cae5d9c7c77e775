# SPDX-License-Identifier: GPL-2.0
"""The blocks of README, man pages and Documentation/*.rst: what a reader would
copy; and the names that a page promises."""

import glob
import os
import re

TOP = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                   "../.."))


def files():
    return ["README", *sorted(
        os.path.relpath(path, TOP) for pattern in ("man/*.[0-9]", "*.rst")
        for path in glob.glob(os.path.join(TOP, "Documentation", pattern)))]


def dedent(lines):
    width = min((len(line) - len(line.lstrip()) for line in lines if line),
                default=0)
    return "\n".join(line[width:] for line in lines).strip("\n")


def of_readme(text):
    """What is set off by four columns, blank lines in it included."""
    block = []
    for line in [*text.splitlines(), "."]:
        if line.startswith("    ") or (not line and block):
            block.append(line)
        elif block:
            yield dedent(block)
            block = []


def of_rst(text):
    """Literal blocks, and those of a language."""
    block, wanted = [], False
    for line in [*text.splitlines(), "."]:
        if wanted and (not line or line.startswith(" ")):
            block.append(line)
            continue
        if any(block):
            yield dedent(block)
        block = []
        wanted = line.startswith(".. code-block::") or (
            line.endswith("::") and not line.startswith(".. "))


def of_man(text):
    for block in re.findall(r"^\.Bd .*-literal.*\n((?:.*\n)*?)\.Ed$", text,
                            re.M):
        block = re.sub(r"^\.\\\".*\n", "", block, flags=re.M)
        yield block.replace(r"\e", "\\").replace(r"\-", "-").strip("\n")
    yield from re.findall(r"^\.Dl (.*)$", text, re.M)


def blocks():
    """(file, text) of each."""
    for path in files():
        with open(os.path.join(TOP, path), encoding="utf-8") as f:
            text = f.read()
        find = of_readme if path == "README" else \
            of_rst if path.endswith(".rst") else of_man
        for block in find(text):
            yield path, block


def joined(text):
    """Continued lines are one."""
    return re.sub(r" *\\\n\s*", " ", text).splitlines()


def one_line(text):
    """Without a prompt and what explains it, three columns and more behind."""
    text = re.sub(r"(?<=\S)   .*$", "", re.sub(r"^# ", "", text))
    return re.sub(r"\s+", " ", text).strip()


def lines_of(text):
    return [one_line(line) for line in joined(text) if line]


def dialogue(text):
    """(line, what it shows): where there are prompts, what has none is
    output."""
    found = []
    for line in filter(None, joined(text)):
        if line.startswith("# ") or not text.startswith("# "):
            found.append((one_line(line), []))
        else:
            found[-1][1].append(one_line(line))
    return found


def mentioned():
    """(file, command) of each that is in a sentence."""
    # the environment of a command belongs to it
    env = r"(?:[A-Z_]+=\S+\s)*"
    words = rf"({env}(?:atp|ip|make|modprobe|ethtool|bpftool|systemctl)\s[^`\"]+)"
    for path in files():
        with open(os.path.join(TOP, path), encoding="utf-8") as f:
            text = f.read()
        found = re.findall(f"``{words}``" if path.endswith(".rst")
                           else f'"{words}"', text)
        found += re.findall(rf"^\.Ql ({env}(?:atp|ip|systemctl) .+)$", text, re.M)
        for line in found:
            yield path, one_line(line.replace("\n", " "))


def told(pattern):
    """Commands that are this, as they stand: for a test that types them."""
    lines = [line for _, text in blocks() for line, _ in dialogue(text)]
    lines += [line for _, line in mentioned()]
    return sorted({line for line in lines if re.fullmatch(pattern, line)})


def named(page, section):
    """Names of variables, keys or counters in that section of a man page."""
    with open(os.path.join(TOP, "Documentation/man", page), encoding="utf-8") as f:
        text, = re.findall(rf"^\.Sh {section}\n((?:(?!\.Sh ).*\n)*)", f.read(), re.M)
    words = " ".join(re.findall(r"^\.(?:It )?Va (.*)$", text, re.M)).split()
    return {word for word in words if re.fullmatch(r"\w+", word)}
