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
