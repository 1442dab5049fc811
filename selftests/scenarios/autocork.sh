#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=2 kernels=6.12,6.1,debug timeout=300
# Small writes are combined while others are in flight; none is forgotten, and a single one
# does not wait.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"

load || bail "cannot load the module"
on_bg 1 "exec rs_autocork serve 7000"
server=$!
wait_for 20 listens 1 7000

# Adds latency, so that several writes happen during one round trip even on a fast machine.
far() { in_all "tc qdisc replace dev eth0 root netem delay 40ms limit 10000"; }
near() { in_all "tc qdisc del dev eth0 root"; }

few() {		# tcp|ring: at least eight writes in a message
	local bytes msgs
	bytes=$(grown 0 "$1-tx-bytes") msgs=$(grown 0 "$1-tx-msgs")
	echo "$bytes bytes in $msgs messages"
	((bytes > 1000000 && msgs * 64 * 8 < bytes))
}
alone() {	# tcp|ring N: nothing was gathered
	local here both
	here=$(grown 0 "$1-tx-msgs")
	both=$(($(grown 0 tcp-tx-msgs) + $(grown 0 ring-tx-msgs)))
	echo "$here of $both messages, $2 writes"
	((both == $2 && here > $2 * 9 / 10))
}

for how in tcp ring; do
	use $how
	[ $how != ring ] || ok "a link comes up" want_link
	for nodelay in 0 1; do
		title="$how, $([ $nodelay = 1 ] || echo "no ")TCP_NODELAY"
		ok "$title: a long round-trip time" far
		mark 0
		ok "$title: many small writes" rs_autocork stream "$ADDR4_1" 7000 20000 $nodelay
		# TCP itself combines them if necessary
		[ $how$nodelay = tcp1 ] || ok "$title: in fewer messages" few $how
		ok "$title: a short round-trip time" near
		ok "$title: bursts" rs_autocork bursts "$ADDR4_1" 7000 $nodelay
	done
	mark 0
	ok "$how: request and response" rs_autocork turns "$ADDR4_1" 7000 500
	ok "$how: request and response, one message each" alone $how 501
done
kill $server
wait $server 2>/dev/null
ok "no socket remains" wait_for 40 no_sockets
ok "the module can be unloaded" wait_for 20 unload_module
done_testing
