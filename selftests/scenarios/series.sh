#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=1 kernels=6.12,6.1,debug timeout=200 seed=1
# A program in a container makes one connection after the other, so that there is no socket in
# between: all use the same link, which ends when there has been none for a while.  Containers are
# the network namespaces h0 and h1.  From the environment: HCA, as hca.sh.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=selftests/scenarios/hca-lib.sh
. "$(dirname "$0")/hca-lib.sh"

add_hosts() {
	local i
	ip netns add h0 && ip netns add h1 &&
		ip -n h0 link add eth0 type veth peer name eth0 netns h1 || return
	for i in 0 1; do
		host $i ip -batch - <<-END && host $i rdma link add hca$i type rs_hca netdev eth0 || return
			link set lo up
			link set eth0 up
			addr add 10.82.0.$((i + 1))/24 dev eth0
		END
	done
}

del_host() { host "$1" rdma link del "hca$1" && ip netns del "h$1"; }

stat() { host "$1" rsctl -s -o stats | value "$2"; }	# HOST NAME
by_ring() {	# HOST
	host "$1" rsctl -j sockets |
		jq -e 'any(.[]; .tx.carrier == "ring" and .rx.carrier == "ring")' >/dev/null
}
on_rings() { by_ring 0 && by_ring 1; }
no_links() { ! both rsctl -j links | grep -q '"state"'; }

connection() {	# N
	local status=0 go=$tmp/go
	rm -f "$go" "$go.held"
	begin_pair 10.82.0.2 -k inet -p $((7000 + $1)) -n 100K -t 100 --hold-at 50K --hold "$go"
	wait_for 20 on_rings || status=1
	: >"$go"
	end_pair && return $status
}

load_module && load_hca profile=plain dma=virt || bail "cannot load the modules"
ok "two hosts" add_hosts
ok "their settings" both sysctl -q -w net.rdmastream.ring_mode=1
for ((n = 1; n <= 8; n++)); do
	ok "connection $n: rings" connection $n
done
for i in 0 1; do
	ok "host $i: one link" test "$(stat $i links-up) $(stat $i links-failed)" = "1 0"
done
ok "the link ends soon" wait_for 5 no_links
for i in 0 1; do
	ok "host $i: its end is no fault" test "$(stat $i links-idle) $(stat $i links-lost)" = "1 0"
done
ok "another connection: rings" connection $n
ok "the module can be unloaded" wait_for 20 unload_module
for i in 0 1; do ok "host $i can be removed" del_host $i; done
ok "rs_hca can be unloaded" wait_for 20 rmmod rs_hca
done_testing
