#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=1 asked=6.12,6.1 timeout=900 seed=1 mem=8192
# Many connections at once over rs_hca, and their memory.  From the environment: HOSTS (64) and
# CONNS (1) from each host to each later one, PLAIN=yes (TCP).
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=selftests/scenarios/hca-lib.sh
. "$(dirname "$0")/hca-lib.sh"

: "${HOSTS:=64}" "${CONNS:=1}"
address() { echo 10.79.0.$(($1 + 1)); }
here() { nsenter --net="/run/netns/h$1" "${@:2}"; }	# N CMD...

add_hosts() {
	local i
	sysctl -q -w net.core.devconf_inherit_init_net=1 net.ipv6.conf.default.disable_ipv6=1 \
		net.ipv4.neigh.default.gc_thresh{1,2,3}=100000 fs.file-max=3000000 fs.nr_open=1048576 || return
	ip netns add wire && ip -n wire link add br0 type bridge mcast_snooping 0 &&
		ip -n wire link set br0 up || return
	for ((i = 0; i < HOSTS; i++)); do
		ip netns add "h$i" || return
		ip link add "p$i" netns wire type veth peer name eth0 netns "h$i" || return
		ip -n wire link set "p$i" master br0 up || return
		ip -n "h$i" -batch - <<-END || return
			link set lo up
			link set eth0 address 02:00:00:00:00:$(printf %02x $((i + 1))) up
			addr add $(address "$i")/24 dev eth0
		END
		here "$i" sysctl -q -w net.ipv4.ip_local_port_range="10000 64000" \
			net.ipv4.tcp_max_syn_backlog=4096 || return
	done
}
add_devices() {
	local i
	for ((i = 0; i < HOSTS; i++)); do
		here "$i" rdma link add "hca$i" type rs_hca netdev eth0 || return
	done
}
settings() {
	local i
	for ((i = 0; i < HOSTS; i++)); do
		# how long it takes to come round again does not matter
		here "$i" sysctl -q -w net.rdmastream.ring_idle_ms=600000 || return
	done
}
del_hosts() {
	local i
	for ((i = 0; i < HOSTS; i++)); do ip netns del "h$i" || return; done
	ip netns del wire
}
names() {
	local i
	for ((i = 0; i < HOSTS; i++)); do echo "h$i=$(address "$i")"; done
}
fabric() {
	# shellcheck disable=SC2046
	rs_fabric ${PLAIN:+-p} "$CONNS" $(names) >"$tmp/fabric" 2>&1
}

modprobe bridge
load_hca || bail "cannot load $HCA/rs_hca.ko"
# otherwise, each namespace has a copy of each device
ok "devices are not shared between namespaces" rdma system set netns exclusive
ok "$HOSTS hosts" add_hosts || bail "no hosts"
ok "a device for each" add_devices || bail "no devices"
ok "the module loads" insmod "$MODULE"
ok "settings" settings
free=$(memory)
[ "$CONNS" = 0 ] || ok "$CONNS connections of each pair" fabric
[ "$CONNS" = 0 ] || diag <"$tmp/fabric"
ok "all memory is freed" wait_for 60 memory_is_back "$free"
diag "$(memory_is_back "$free")"
ok "the module can be unloaded" wait_for 60 rmmod rdmastream
ok "the namespaces of the hosts can be removed" del_hosts
ok "no device remains" wait_for 60 no_devices
done_testing
