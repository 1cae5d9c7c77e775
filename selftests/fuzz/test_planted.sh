#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Each fuzzer can fail: a copy of the sources with one fault in it, and the
# fuzzer built from that finds it within a bounded number of inputs. What those
# for packets have found becomes vectors, at which the engine's test fails in the
# copy, and not in the sources.

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
		selftests/vectors "$dir/selftests"
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

# play SOURCES BUILD FILE: the engine's test with these vectors
play() {
	make -s --no-print-directory -C selftests/engine top="$1" O="$2" \
		"$2/test_vectors" >/dev/null &&
		mkdir -p "$2/cwd/engine" "$2/cwd/vectors" &&
		cp "$3" "$2/cwd/vectors/packets" &&
		(cd "$2/cwd/engine" && "$2/test_vectors") 2>&1
}

# to_vector TARGET: from the input that was found to a test that fails
to_vector() {
	local dir=$PWD/build/fuzz/planted/$1 vectors found due

	vectors=$dir/vectors
	found=$(compgen -G "$dir/crash-*" | head -n 1)
	selftests/fuzz/vector.py "$1" "$found" found >"$vectors" || return 1
	# what is due where nothing was planted, as the test itself says
	play "$PWD" "$PWD/build/selftests/engine" "$vectors" >"$dir/due"
	while read -r due; do
		sed -i "0,/^\(found[^ ]* [^ ]*\) ? ?/s//\1 $due -/" "$vectors"
	done < <(sed -n 's/^# .* found.*: \(.*\), not ?$/\1/p' "$dir/due")
	if ! play "$PWD" "$PWD/build/selftests/engine" "$vectors"; then
		echo "without the fault it does not pass"
		return 1
	fi
	! play "$dir" "$dir/engine" "$vectors"
}

plan 9
check "packet: a field that nobody looks at" plant packet \
	kernel/engine/packet.c 's/if (pkt->bitmap1)/if (0)/'
check "peers: a result longer than its fragment" plant peers \
	kernel/engine/worker.c \
	's/pkt->elements != atp_frag_lanes(w, chunk, pkt->seq)/0/'
check "packet: what was found is a vector" to_vector packet
check "peers: what was found is a vector" to_vector peers
check "engine: a sum that does not fit goes unseen" plant engine \
	kernel/engine/lanes.c 's/if (likely(fits))/if (fits || 1)/'
check "engine: a server's sum is scaled again" plant engine \
	kernel/engine/ps_server.c 's/ || cell->flags & ATP_F_RAW//'
check "switch: any UDP port is good" plant switch \
	userspace/switch/switch_way.h 's/p->sport != ATP_PORT/0/'
check "args: more workers than there is room for" plant args \
	userspace/atp/switch.c 's/n == ATP_MAX_WORKERS/n == 1000/'
check "netlink: an attribute beyond the end" plant netlink \
	userspace/atp/nlparse.c 's/attr->nla_len > len)/0)/'
finish
