#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=1 kernels=6.12 timeout=300 mem=2048
# Many peers of one host get rings with the default limits.  Hosts are network namespaces with
# one rs_hca device each, on a bridge.  From the environment: PEERS (300; "make peers": a
# thousand, which takes a guest of 8 GiB), HCA, as for hca.sh.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=selftests/scenarios/hca-lib.sh
. "$(dirname "$0")/hca-lib.sh"

: "${PEERS:=300}"

server() { nsenter --net=/run/netns/server "$@"; }
address() { echo "10.78.$((($1 + 256) / 256)).$((($1 + 256) % 256))"; }
mac() { printf '02:00:00:00:%02x:%02x' $(($1 / 256)) $(($1 % 256)); }

# Static neighbour entries: with a thousand hosts, the ARP table would overflow.
add_hosts() {
	local i
	# no IPv6, because a thousand hosts would announce their addresses to a thousand others
	sysctl -q -w net.core.devconf_inherit_init_net=1 net.ipv6.conf.default.disable_ipv6=1 \
		net.ipv6.conf.all.disable_ipv6=1 || return
	ip netns add server && server ip -batch - <<-END || return
		link add br0 type bridge
		link set lo up
		link set br0 address $(mac 0) up
		addr add 10.78.0.1/16 dev br0
	END
	for ((i = 0; i < PEERS; i++)); do
		echo "netns add p$i"
		echo "link add v$i netns server type veth peer name eth0 netns p$i"
	done | ip -batch - || return
	for ((i = 0; i < PEERS; i++)); do
		echo "link set v$i master br0 up"
		echo "neigh add $(address $i) lladdr $(mac $((i + 256))) dev br0 nud permanent"
	done | server ip -batch - || return
	for ((i = 0; i < PEERS; i++)); do
		ip -n p$i -batch - <<-END || return
			link set lo up
			link set eth0 address $(mac $((i + 256))) up
			addr add $(address $i)/16 dev eth0
			neigh add 10.78.0.1 lladdr $(mac 0) dev eth0 nud permanent
		END
	done
}
add_devices() {
	local i
	server rdma link add hca type rs_hca netdev br0 || return
	for ((i = 0; i < PEERS; i++)); do
		nsenter --net=/run/netns/p$i rdma link add hca$i type rs_hca netdev eth0 || return
	done
}
names() {
	local i
	for ((i = 0; i < PEERS; i++)); do echo p$i; done
}
del_hosts() { { names; echo server; } | sed 's/^/netns del /' | ip -batch -; }

ulimit -n 10000 || bail "no room for descriptors"
modprobe bridge
load_hca || bail "cannot load $HCA/rs_hca.ko"
# otherwise, each namespace has a copy of each device
ok "devices are not shared between namespaces" rdma system set netns exclusive
ok "$PEERS hosts and a server" add_hosts || bail "no hosts"
ok "a device for each" add_devices || bail "no devices"
ok "the module loads" insmod "$MODULE"
# how long it takes to come round again is no matter
for ((i = 0; i < PEERS; i++)); do
	nsenter --net=/run/netns/p$i sysctl -q -w net.rdmastream.ring_idle_ms=600000
done
server sysctl -q -w net.rdmastream.ring_idle_ms=600000
# shellcheck disable=SC2046
server rs_peers 10.78.0.1 $(names) >"$tmp/peers" 2>&1
diag "$(grep -E "MemFree|Slab" /proc/meminfo)"
ok "data from and to each" test $? = 0
diag <"$tmp/peers"
ok "each has rings" test "$(tail -n 1 "$tmp/peers")" = "$PEERS"
diag "$(grep -E "MemFree|Slab" /proc/meminfo)"
ok "the module can be unloaded" wait_for 60 rmmod rdmastream
ok "the namespaces can be removed" del_hosts
ok "no device remains" wait_for 60 no_devices
done_testing
