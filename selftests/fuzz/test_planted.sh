#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Each fuzzer can fail: a copy of the sources with one fault in it, and the
# fuzzer built from that finds it within a bounded number of inputs.

cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
# shellcheck source=../vm/tap.sh
. selftests/vm/tap.sh

# plant TARGET FILE SED: by number of inputs, so that a slow machine finds it too
plant() {
	local target=$1 file=$2 dir=$PWD/build/fuzz/planted/$1 log

	log=$dir/log
	rm -rf "$dir"
	mkdir -p "$dir/corpus" "$dir/kernel" "$dir/selftests" "$dir/userspace"
	cp -r uapi "$dir"
	cp -r kernel/engine "$dir/kernel"
	cp -r userspace/atp userspace/switch "$dir/userspace"
	cp -r selftests/engine selftests/include selftests/switch \
		"$dir/selftests"
	sed -i "$3" "$dir/$file"
	if cmp -s "$file" "$dir/$file"; then
		echo "$file: there is nothing to plant it into"
		return 1
	fi
	make -s --no-print-directory -C selftests/fuzz SRC="$dir" O="$dir/bin" \
		"$dir/bin/fuzz_$target" || return 1
	if "$dir/bin/fuzz_$target" -runs=20000 -seed=1 -detect_leaks=0 \
		-artifact_prefix="$dir/" "$dir/corpus" \
		"selftests/fuzz/corpus/$target" >"$log" 2>&1; then
		tail -n 5 "$log"
		return 1
	fi
	# by an input, and not for a reason of its own
	compgen -G "$dir/crash-*"
}

plan 6
check "packet: a field that nobody looks at" plant packet \
	kernel/engine/packet.c 's/if (pkt->bitmap1)/if (0)/'
check "peers: a result longer than its fragment" plant peers \
	kernel/engine/worker.c \
	's/pkt->elements != atp_frag_lanes(w, chunk, pkt->seq)/0/'
check "engine: a sum that does not fit goes unseen" plant engine \
	kernel/engine/ps.c 's/if (likely(!(wrapped >> 31)))/if (wrapped || 1)/'
check "switch: any UDP port is good" plant switch \
	userspace/switch/atp_switch.bpf.c 's/p.sport != ATP_PORT/0/'
check "args: more workers than there is room for" plant args \
	userspace/atp/switch.c 's/n == ATP_MAX_WORKERS/n == 1000/'
check "netlink: an attribute beyond the end" plant netlink \
	userspace/atp/nlparse.c 's/attr->nla_len > len)/0)/'
finish
