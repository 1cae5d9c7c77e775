#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Is the code that follows from the netlink specification up to date, and is
# what the generator does not know refused?

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
spec=Documentation/netlink/specs/atp.yaml
gen=userspace/netlink-gen/nlgen.py

# refused PATTERN SED: a change of the specification, and what is said of it
refused() {
	sed "$2" "$spec" >"$tmp/spec.yaml"
	! cmp -s "$spec" "$tmp/spec.yaml" || return 1
	run 1 "$1" python3 "$gen" --spec "$tmp/spec.yaml" --mode uapi
}

check "generate" userspace/netlink-gen/netlink-gen.sh "$tmp"
while read -r file; do
	check "up to date: $file" diff -u "$file" "$tmp/$file"
done < <(cd "$tmp" && find . -type f | sed 's|^\./||' | sort)
check "unknown type" refused 'job.id' '0,/type: u32/s//type: u3/'
check "unknown property" refused frob '0,/multi-attr: true/s//frob: true/'
check "unknown nest" refused nested-attributes \
	's/nested-attributes: worker/nested-attributes: frob/'
# shellcheck disable=SC2016 # the dollar is the last line
check "unknown attribute" refused frob '/&job-config/,$s/- id/- frob/'
check "unknown flag of a group" refused frob 's/mcast-cap-net-admin/frob/'
check "unknown policy" refused per-op 's/per-op/split/'
end
