#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""What Documentation/locking.rst and the comments say of locks, against the
code: what a comment says that a function needs is asserted in it; what is read
without a lock, by READ_ONCE() and the like, is what the document lists, field by
field; and who writes such a field does it with WRITE_ONCE().  A read that lacks
both lock and READ_ONCE() is not seen here; KCSAN (make check-debug) finds those
that race."""
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
    (r"\bsoftirq under RCU\b", "lockdep_assert_in_softirq("),
    (r"^RCU\.", "RCU_LOCKDEP_WARN("),
)
# what takes or releases it is no function that needs it
NOT = r"takes the socket lock|no lock|without lock|about to release"

# "struct x y", "struct x *y", "struct x *y(...)"
DECLARED = re.compile(r"\bstruct (\w+)\s+(?:__\w+\s+)?\**(\w+)")
NESTED = r"(?:[^()]|\((?:[^()]|\([^()]*\))*\))*"
# of what it gives only this much is known: that it is no atomic counter
READ = re.compile(r"\b(READ_ONCE|data_race|rcu_dereference\w*|\w+_lockless|"
                  rf"hlist_for_each_entry_rcu)\(({NESTED})\)")
# a variable or a call, and fields behind it
PATH = re.compile(rf"(\w+)(\({NESTED}\))?((?:\[[^]]*\]|(?:->|\.)\w+)*)")
WRITTEN = re.compile(rf"({PATH.pattern})\s*(?:[-+|&^]?=(?!=)|\+\+|--)")
# what a header says of a field that is listed, and of no other
UNLOCKED = r"without lock|readers use RCU"
# What is called with a pointer and gives one to the same
SAME = ("per_cpu_ptr",)
# Who writes a field that nobody else reads there, and why
EXCUSED = {
    # the job is in no table yet
    "netlink.c: atp_nl_params": "timeout patience",
    "job.c: atp_job_alloc": "uid gid",
    # the socket has no descriptor yet
    "af_atp.c: atp_create": "sk_sndbuf sk_rcvbuf",
}


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def headers(pattern):
    return "\n".join(map(read, glob.glob(os.path.join(TOP, pattern))))


def functions(pattern="kernel/*.c"):
    """(file:name, what its comment says of the context, head, body)"""
    for path in sorted(glob.glob(os.path.join(TOP, pattern))):
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


class Types:
    """Whose field is it?  As far as declarations in our headers and in the
    function itself tell."""
    def __init__(self):
        text = headers("kernel/*.h") + headers("kernel/engine/*.h")
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
        self.fields = {
            m[1]: {name: kind for kind, name in DECLARED.findall(m[2])}
            for m in re.finditer(r"^struct (\w+) \{\n(.*?)^\}", text,
                                 re.M | re.S)}
        self.calls = {m[2]: m[1] for m in re.finditer(
            r"\bstruct (\w+) \*(\w+)\(", text)}

    def owner(self, path, known):
        """The struct that has the last field of @path, and that field; or the
        call that @path is"""
        m = PATH.match(path.strip(" &*!("))
        if not m:
            return None, path
        base, args, rest = m.groups()
        kind = self.calls.get(base) if args else known.get(base)
        if base in SAME:
            kind = self.owner(args[1:].split(",")[0], known)[0]
        fields = re.findall(r"\w+", re.sub(r"\[[^]]*\]", "", rest))
        if not fields:
            return (None, base + "()") if args else (kind, base)
        for field in fields[:-1]:
            kind = self.fields.get(kind, {}).get(field)
        return kind, fields[-1]


def listed():
    """What the document says is read without a lock: `struct.field` or
    `struct.{field,field}`, and what has no struct"""
    text = read(os.path.join(TOP, "Documentation/locking.rst"))
    text = text.split("\nLockless reads\n")[1].split("\nShutdown\n")[0]
    fields = set()
    words = set()
    for code in re.findall(r"``(.*?)``", text, re.S):
        m = re.fullmatch(r"(\w+)\.(?:(\w+)|\{([\w,\s]+)\})", code)
        if m:
            fields |= {(m[1], f) for f in re.findall(r"\w+", m[2] or m[3])}
        else:
            words.add(code)
    return {f for f in fields if f[1] != "lock"}, words


def reads(types):
    """(function, struct or None, field, variable or call)"""
    for name, _, head, body in (*functions(), *functions("kernel/engine/*.c")):
        known = {n: k for k, n in DECLARED.findall(head + body)}
        for how, what in READ.findall(body):
            # the list is the second argument
            if how.startswith("hlist"):
                what = re.sub(r"^\w+,\s*", "", what)
            yield name, *types.owner(what, known)


def comments():
    """(struct, field, what is said of it) in our headers"""
    for m in re.finditer(r"/\*\*\n \* struct (\w+) -(.*?)\*/",
                         headers("kernel/*.h"), re.S):
        text = re.sub(r"\n \*\s*", " ", m[2]).strip()
        for said in re.findall(r"@(\w+): (.*?)(?= @\w+: |$)", text):
            yield m[1], *said


def not_listed(types):
    fields, words = listed()
    seen = set()
    for name, kind, field in reads(types):
        seen.add((kind, field))
        if (kind, field) not in fields and (kind or field not in words):
            yield f"{name}: {kind or 'whose?'}.{field}"
    for kind, field in sorted(fields - seen):
        yield f"locking.rst: nothing reads {kind}.{field}"
    for kind, field, said in comments():
        if ((kind, field) in fields) != bool(re.search(UNLOCKED, said)):
            yield f"{kind}.{field}: {said}"


def not_once(types):
    """The engine knows nothing of who reads, and its fields are not meant."""
    ours = {kind for kind, _, _ in comments()} | {"sock", "atp_params"}
    fields = {f for f in listed()[0] if f[0] in ours}
    excused = set()
    for name, _, head, body in functions():
        known = {n: k for k, n in DECLARED.findall(head + body)}
        for m in WRITTEN.finditer(body):
            kind, field = types.owner(m[1], known)
            if (kind, field) not in fields:
                continue
            if field in EXCUSED.get(name, "").split():
                excused.add((name, field))
            else:
                yield f"{name}: {m[1]} without WRITE_ONCE()"
    for name, those in EXCUSED.items():
        for field in those.split():
            if (name, field) not in excused:
                yield f"{name}: does not write {field}"


def main():
    print("TAP version 13")
    print("1..4")
    contexts = [c for _, c, _, _ in functions() if c]
    types = Types()
    results = (
        ("there are comments that say what a function needs",
         [] if len(contexts) > 30 else [f"{len(contexts)} of them"]),
        ("what is needed is asserted", list(not_asserted())),
        ("what is read without lock is what locking.rst lists",
         list(not_listed(types))),
        ("what is read without lock is written with WRITE_ONCE()",
         list(not_once(types))),
    )
    for n, (what, wrong) in enumerate(results, 1):
        print(f"{'not ' if wrong else ''}ok {n} {what}")
        for line in wrong:
            print("#", line)
    sys.exit(any(wrong for _, wrong in results))


if __name__ == "__main__":
    main()
