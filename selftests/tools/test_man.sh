#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Man pages and completion: well-formed, and do they know every word?

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

man=Documentation/man

# words PAGE COMMAND...: every word of the usage is in the page
words() {
	local page=$1 word status=0

	shift
	for word in $("$@" | grep -v ':=' | grep -ow '[a-z][a-z]*' | sort -u); do
		grep -qw -- "$word" "$man/$page" && continue
		echo "$page does not mention $word"
		status=1
	done
	return "$status"
}

# lint PAGE: nothing is said of it; what other pages there are does not matter
lint() {
	! mandoc -Tlint "$1" |
		grep -v -e 'referenced manual not found' -e 'outdated mandoc.db'
}

for page in "$man"/*.[0-9]; do
	check "lint: ${page##*/}" lint "$page"
done
for object in job sock stats top check perf switch monitor; do
	check "$object: page and usage agree" words "atp-$object.8" \
		"$atp" "$object" help
done

# Counters have one text each, where the kernel has their names from.
check "counters: page and kernel agree" python3 - <<'END'
import re, sys

told = dict(re.findall(r"\.It Va (\w+)\n(.*)",
                       open("Documentation/man/atp-stats.8").read()))
bad = 0
for path, prefix in (("counters.h", ""), ("engine/drop.h", "drop_")):
    table = re.findall(r'X\(\w+,\s*"(\w+)",\s*"([^"]*)"\)',
                       open("kernel/" + path).read())
    assert len(table) > 20
    for name, text in table:
        if told.get(prefix + name) != text:
            print(prefix + name, "is not", repr(text))
            bad = 1
sys.exit(bad)
END

# man finds a page by the names in it; test_make_install.sh has the links.
check "libatp(3): page and library have the same functions" \
	python3 - <<'END'
import re, sys

def found(pattern, path, flags=re.M):
    return set(re.findall(pattern, open(path).read(), flags))

page = "Documentation/man/libatp.3"
functions = found(r"^\t(atp_\w+);$", "userspace/lib/libatp.map")
assert len(functions) > 10
bad = 0
for where, names in (
        ("NAME", found(r"^\.Nm (\w+)", page)),
        ("SYNOPSIS", found(r"^\.Ft .*\n\.Fn (\w+)", page))):
    if names != functions:
        print(where, "differs in", names ^ functions)
        bad = 1
sys.exit(bad)
END

# What ends a run comes through the library as it is.
check "libatp(3) has the errors of atp(7)" python3 - <<'END'
import re, sys

errors = {page: set(re.findall(r"^\.It Bq Er (E\w+)$",
                               open("Documentation/man/" + page).read(), re.M))
          for page in ("atp.7", "libatp.3")}
assert len(errors["atp.7"]) > 10
missing = errors["atp.7"] - errors["libatp.3"]
print(missing)
sys.exit(bool(missing))
END

# Who has no header file has the page.
check "structures: pages and headers agree" python3 - <<'END'
import re

def read(path):
    return open(path).read()

def struct(name, path):
    text, = re.findall(r"^struct %s \{\n(.*?)^\};" % name, read(path), re.M | re.S)
    return re.findall(r"^\t(.*?)\s+(\w+);$", text, re.M)

def items(text):
    return [name for line in re.findall(r"^\.It Va (.*)$", text, re.M)
            for name in line.split(" , ")]

fields = struct("atp_info", "uapi/linux/atp.h")
text, = re.findall(r"^struct atp_info is (.*?)^\.El$",
                   read("Documentation/man/atp.7"), re.M | re.S)
assert items(text) == [name for _, name in fields], items(text)
sizes = [kind for kind, _ in fields]
words, doubles = map(int, re.match(r"(\d+) numbers of 32 bits and then (\d+) of 64",
                                   text).groups())
assert sizes == ["__u32"] * words + ["__u64"] * doubles, sizes

def enum(name, prefix, path):
    text = re.search(r"^enum %s \{\n.*?^\};" % name, read(path), re.M | re.S)[0]
    return re.findall(r"^\t%s(\w+) = (\d+),$" % prefix, text, re.M)

values = (enum("atp_state", "ATP_", "uapi/linux/atp.h") +
          enum("atp_reason", "ATP_REASON_", "uapi/linux/atp_packet.h"))
assert len(values) > 15
said = " ".join(text.split())
for name, number in values:
    word = name.lower().replace("_", "-")
    assert word == "none" or f"{number} {word}" in said, (number, word)

page = re.findall(r'^\.It Vt "?(.*?)"? Va (\w+)$', read("Documentation/man/libatp.3"),
                  re.M)
assert page == struct("atp_sum", "userspace/lib/atp.h"), page
END

# As atp(8) and atp-switch(8) say
check "exit status: an object that there is not" run 1 '^Error' "$atp" frobnicate
check "exit status: wrong words" run 255 '^Error' "$atp" job add 7 wroker 1
check "exit status: wrong words of the switch" run 1 'what is "frob"' \
	"$atp" switch attach frob

# complete_as WORDS: what bash would offer for the last word
complete_as() {
	bash -c '. userspace/atp/atp.bash
		read -r -a COMP_WORDS <<<"$1"
		[[ $1 != *" " ]] || COMP_WORDS+=("")
		COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
		_atp
		echo "${COMPREPLY[*]}"' bash "$1"
}
export -f complete_as

check "completion: objects" run 0 '^job sock stats switch top monitor check perf help$' \
	bash -c 'complete_as "atp "'
check "completion: part of an object" run 0 '^stats$' \
	bash -c 'complete_as "atp -json sta"'
check "completion: commands" run 0 'add.*stall' bash -c 'complete_as "atp job "'
check "completion: properties" run 0 '^fragment$' \
	bash -c 'complete_as "atp job add 1 f"'
check "completion: what can be set" run 0 '^timeout patience uid gid$' \
	bash -c 'complete_as "atp job set 1 "'
check "completion: top" run 0 '^batch$' bash -c 'complete_as "atp top b"'
check "completion: what perf is compared with" run 0 '^gloo mpi$' \
	bash -c 'complete_as "atp perf job 7 rank 0 vs "'
check "completion: file" run 0 '^file$' \
	bash -c 'complete_as "atp stats prometheus "'
check "completion: options" run 0 '-netns' bash -c 'complete_as "atp -"'
end
