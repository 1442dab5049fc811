#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=2 kernels=6.12,6.1,debug timeout=300
# The cost of a message on a ring in work requests, completions and wake-ups, by the counters
# of both ends.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"

load || bail "cannot load the module"
use ring
ok "a link comes up" want_link
on_bg 1 "exec rs_autocork serve 7000"
server=$!
wait_for 20 listens 1 7000

# Counts of both ends from "begin" to "end", without periodic work such as probes.
begin() { mark 0; mark 1; }
end() { growth 0 >"$tmp/growth.0"; growth 1 >"$tmp/growth.1"; }
counted() { value "$2" "$tmp/growth.$1"; }	# VM NAME

# most VM WHAT PERCENT OF: at most PERCENT of WHAT for 100 of OF
most() {
	local n of
	n=$(counted "$1" "$2") of=$(counted "$1" "$4")
	echo "VM $1: $2 +$n, $4 +$of"
	((of > 200 && n * 100 <= of * $3))
}

begin
ok "request and response: at most one wake-up each" rs_autocork turns "$ADDR4_1" 7000 2000
end
for vm in 0 1; do
	ok "VM $vm: one work request per message" most $vm wrs 105 ring-tx-msgs
	ok "VM $vm: posted separately" most $vm post-sends 105 ring-tx-msgs
	ok "VM $vm: unsignalled" most $vm wrs-signalled 10 wrs
	ok "VM $vm: one completion per received message" most $vm completions 110 ring-rx-msgs
	ok "VM $vm: no interrupting credits" most $vm credits-intr 1 ring-tx-msgs
done

begin
kill $server
wait $server 2>/dev/null

# Writes are combined, so few requests are signalled: the percentage.  In User-Mode Linux, a
# system call takes nearly as long as a message, so only two or three writes are combined, not
# dozens.
telling=12
[ "$VM_ROOT" != hostfs ] || telling=75
# On 6.1, soft-RoCE sends in the context of the writer, so with one CPU the answer arrives
# before the next write.
alone=
[ "$VM_ROOT" != hostfs ] || [[ $(uname -r) != 6.1.* ]] ||
	alone="soft-RoCE completes each write before the next"
together_ok() {	# NAME CMD...
	if [ -n "$alone" ]; then skip "$1" "$alone"; else ok "$@"; fi
}
seldom() {	# BYTES GREATEST-WRITE
	local n writes=$(($1 / $2))
	n=$(counted 0 wrs-signalled)
	echo "wrs-signalled +$n, wrs +$(counted 0 wrs), $writes writes or more"
	((n * 100 <= writes * telling))
}
for size in 64 4096; do
	begin
	ok "writes of up to $size bytes" stream inet inet -n $((size << 12)) -m 0 -w $size -r 1M
	end
	together_ok "writes of up to $size bytes: a signalled work request for $telling % of them at most" seldom $((size << 12)) $size
done
# Large ones are signalled.  How many are combined depends on the speed of the reader.
begin
ok "writes of up to 64 KiB" stream inet inet -n 32M -m 0 -w 64K -r 1M
end
together() {
	local n writes=$((2 * 512))
	n=$(counted 0 wrs)
	echo "wrs +$n, about $writes writes"
	((n * 4 <= writes * 3))
}
together_ok "writes of up to 64 KiB: three work requests for four of them" together
done_testing
