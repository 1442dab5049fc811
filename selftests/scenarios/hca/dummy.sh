#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A device of a dummy interface, which leads nowhere: a host connects to itself over it.  Run by
# ../hca.sh.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/../lib.sh"

own=10.79.0.1

load || bail "cannot load the module"
use ring
set_net loopback=1
hurry

interface() {
	ip link add dummy1 type dummy && ip addr add $own/24 dev dummy1 && ip link set dummy1 up
}
up() { rsctl -j links | jq -e 'any(.[]; .state == "up" and .device == "hca10")' >/dev/null; }
rings() {	# each end of the connection has one each way
	rsctl -j sockets | jq -e 'map(select(.mode != "listen")) |
		length >= 2 and all(.[]; .tx.ring_size > 0 and .rx.ring_size > 0)' >/dev/null
}
itself() { rs_stream -b -k inet -l $own -n 600K -t 60 --hold-at 50K --hold "$tmp/go"; }
on_rings() {
	local tcp ring
	mark 0
	itself >"$tmp/client" &
	client=$!
	wait_for 20 up && wait_for 20 rings
	touch "$tmp/go"
	wait $client || return
	read -r tcp ring < <(grown 0 tcp-tx-bytes ring-tx-bytes)
	echo "$tcp bytes by TCP, $ring by rings"
	# by both ends; TCP carries what comes before the rings, or between them
	[ $((tcp + ring)) = $((2 * 600 * 1024)) ] && [ "$ring" -gt 100000 ]
}

ok "a dummy interface" interface
ok "a device" rdma link add hca10 type rs_hca netdev dummy1
ok "a host moves bytes to itself on rings over the device" on_rings || rsctl peers | diag
ok "the device executed requests" awk '
	$1 == "hca10" { n[$2] = $3 }
	END { print n["requests"] " requests, " n["bytes"] " bytes"; exit !(n["bytes"] > 100000) }' \
	/sys/module/rs_hca/parameters/counts
ok "the device can be removed" rdma link del hca10
ok "the interface can be removed" ip link del dummy1
set_net loopback=0
ok "no stream remains" wait_for 40 no_streams
done_testing
