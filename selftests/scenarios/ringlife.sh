#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=2 kernels=6.12,6.1,debug timeout=400
# Rings start small, grow with use, are taken back when idle or when memory is short, and are
# granted again; all bytes are always correct.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"

load || bail "cannot load the module"

# Largest receive ring of a VM's sockets, bytes.
greatest() { on "$1" rsctl -j sockets | jq '[.[].rx["ring_size"] // 0] | max // 0'; }
has_ring() { [ "$(greatest "$1")" -ge "$2" ]; }	# VM BYTES
no_ring() { [ "$(greatest "$1")" = 0 ]; }
pinned() { on "$1" rsctl -j links | jq '[.[]["rmb_bytes"]] | add // 0'; }
nothing_pinned() { [ "$(pinned 0)" = 0 ] && [ "$(pinned 1)" = 0 ]; }

all_granted() { [ "$(grown 0 grants-tx)" -ge 60 ]; }

total=24M
hold() {	# CONNS BYTES [OPTION...]: held after that many bytes, until "go"
	local conns=$1 bytes=$2
	shift 2
	file=$(fresh go)
	begin_streams -C "$conns" -n "$total" -t 150 --hold-at "$bytes" --hold "$file" "$@"
	wait_for 60 test -e "$file.held"
}
whole() {	# NAME
	in_all touch "$file"
	whole_streams "$1"
}

set_net ring_idle_ms=600000 link_idle_ms=600000
ok "a link comes up" want_link
mark 0
hold 1 4K --until "$tmp/enough"
ok "little traffic: a connection stays open" test $? = 0
ok "little traffic: the ring is small" has_ring 1 16384
ok "little traffic: the ring does not grow" test "$(greatest 1)" -le 32768
set_net ring_idle_ms=1500
ok "idle: the ring is taken back" wait_for 20 no_ring 1
ok "idle: the ring of the other direction, too" wait_for 20 no_ring 0
ok "idle: no memory is registered for rings" wait_for 30 nothing_pinned
ok "idle: the reason is shown" sh -c 'rsctl -j sockets | grep -q ring-idle'
in_all touch "$file"
ok "busy again: the ring gets its full size" wait_for 20 has_ring 1 262144
in_all touch "$tmp/enough"
whole "busy again"
ok "rings were used" test "$(grown 0 ring-tx-bytes)" -gt 12000000

hold 1 8M
ok "growth: a connection stays open" test $? = 0
ok "growth: the ring has grown" test "$(grown 0 revokes-tx)" -gt 0
whole "growth"

# SO_RCVBUF takes precedence over ring_size, larger or smaller (half of it counts, as on TCP)
hold 1 4M --rcvbuf 64K
ok "SO_RCVBUF 64K: a connection stays open" test $? = 0
ok "SO_RCVBUF 64K: the ring is limited" test "$(greatest 1)" -le 65536
whole "SO_RCVBUF 64K"

# more streams than there is memory for: idle ones return their rings
ok "rmb_max: nothing is registered at first" wait_for 30 nothing_pinned
set_net rmb_max=1048576 ring_idle_ms=8000
total=512K
mark 0
hold 60 64K
ok "rmb_max: 60 connections are open" test $? = 0
ok "rmb_max: all get a ring when others have returned theirs" wait_for 40 all_granted
ok "rmb_max: the limit is respected" test "$(pinned 1)" -le 1048576
whole "ceiling"
# the host is short of memory: idle rings are taken back sooner
set_net ring_idle_ms=16000 rmb_max=67108864
total=2M
hold 2 1M
ok "pressure: connections stay open" test $? = 0
ok "pressure: there are rings" has_ring 0 16384
# each request of the shrinker counts for two seconds
asked() { echo 2 >/proc/sys/vm/drop_caches && no_ring 0; }
ok "pressure: idle rings are taken back when the shrinker asks" wait_for 10 asked
whole "pressure"

# many busy streams share the link fairly, whatever their ring sizes
crowd=32 each=$((1024 * 1024))
[ "$SLOW" = 1 ] || each=$((each / 4))
file=$(fresh enough)
# bytes received on each, by inode
arrived() { on 1 rsctl -j sockets | jq -c 'map(select(.rx.offset) | { key: "\(.inode)", value: .rx.offset }) | from_entries'; }
began() { arrived >"$tmp/first" && jq -e "length == $crowd and (map(.) | min) > $each" "$tmp/first"; }
went_on() {
	arrived >"$tmp/then"
	jq -se '.[0] as $first | .[1] | to_entries | map(.value - $first[.key])' "$tmp/first" "$tmp/then" >"$tmp/shares"
	jq -e "add > $crowd * $each" "$tmp/shares"
}
# the share of half of rmb_max is 160 KiB, so 128; except for two, which may have grown while
# others were being replaced
set_net rmb_max=$((10 << 20))
shares() { on 1 rsctl -j sockets | jq -e "map(.rx.ring_size // empty)$1"; }
have_shares() { shares " | length == $crowd and min >= 65536 and (map(select(. != 131072)) | length) <= 2"; }
# a stream with a ring before others have one would get more
go=$(fresh go)
all_have_rings() { shares " | length == $crowd"; }
begin_streams -C $crowd -n $((2 * each)) -m 4K -t $((260 * SLOW)) --until "$file" --hold-at 4K --hold "$go"
ok "crowd: all have rings" wait_for 60 all_have_rings
in_all touch "$go"
ok "crowd: all rings receive data" wait_for 90 began
ok "crowd: much data is transferred" wait_for 90 went_on
diag "came on each: $(jq -c sort "$tmp/shares")"
nobody="crowd: nobody has less than seven tenths of the mean"
if [ "$SLOW" != 1 ]; then
	skip "$nobody" "a slow kernel shares out its processor, not the link"
elif [ "$VM_ROOT" = hostfs ] && [[ $(uname -r) == 6.1.* ]]; then
	skip "$nobody" "soft-RoCE completes each write before the next, the link has no queue"
else
	ok "$nobody" jq -e 'min > 0.7 * add / length' "$tmp/shares"
fi
grown="crowd: each ring has grown to its share of the memory"
if [ "$SLOW" = 1 ]; then
	ok "$grown" wait_for 30 have_shares
else
	skip "$grown" "a slow kernel fills few rings"
fi
diag "rings: $(shares ' | group_by(.) | map("\(length) of \(.[0])") | join(", ")')"
in_all touch "$file"
whole_streams "crowd"
set_net rmb_max=$((64 << 20))

# as by default: only streams that transfer data get a ring
set_net ring_mode=2 ring_threshold=16384
mark 0
ok "short: 20 connections of 2 KiB" stream inet inet -C 20 -n 2K -t 30
ok "short: no ring was granted" test "$(grown 0 grants-tx)" = 0
hold=$tmp/long
go_with_rings "$hold" &
ok "long: one connection of 8 MiB" stream inet inet -n 8M -t 60 --hold-at 64K --hold "$hold"
# by TCP goes what is written before the first ring, and while a larger one is granted
ok "long: a good part of it used rings" test "$(grown 0 ring-rx-bytes)" -gt $((2 << 20))
ok "no socket remains" wait_for 20 no_sockets
ok "the module can be unloaded" wait_for 20 unload_module
done_testing
