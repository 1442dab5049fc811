#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=2 kernels=6.12,6.1,debug timeout=600
# Several links to one peer: streams are spread over them and leave broken links for others,
# also on another RDMA device; a link that flaps is established ever less often.  Every byte is
# checked against its offset.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=selftests/scenarios/rdma-ports.sh
. "$(dirname "$0")/rdma-ports.sh"

load 17 || bail "cannot load the module"
conns=50 each=256K busy=1M
[ "$KERNEL" != debug ] || conns=20 busy=1M

# rxe1, on a separate network.  soft-RoCE does not support VLANs, and a device on top of eth0
# would belong to rxe0, too: so the VLAN ends in a bridge.
second_device() {	# VM
	on "$1" "modprobe -aq 8021q bridge veth
		set -e
		# br1 must not answer for eth1
		sysctl -q -w net.ipv4.conf.all.arp_ignore=1
		ip link add br1 type bridge forward_delay 0
		ip link add link eth0 name eth0.10 type vlan id 10
		ip link add eth1 type veth peer name eth1p
		for dev in eth0.10 eth1p; do ip link set \$dev master br1; done
		for dev in br1 eth0.10 eth1p eth1; do ip link set \$dev up; done
		ip addr add 10.78.0.$(($1 + 1))/24 dev eth1
		rdma link add rxe1 type rxe netdev eth1"
}
rxe() {		# VM DEVICE add|del
	case $3 in
	add)	on "$1" rdma link add "$2" type rxe netdev "eth${2#rxe}" ;;
	del)	on "$1" rdma link del "$2" ;;
	esac
}
reload() {
	in_all rmmod rdmastream && in_all insmod "$MODULE" &&
		set_net ack_timeout=$((SLOW > 1 ? 19 : 17)) cm_timeout_ms=$((10000 * SLOW)) ring_mode=1 ring_size=65536 ring_idle_ms=3600000 "$@"
}

# Only links that are up.
up_links() {	# VM JQ: an expression for each
	on "$1" rsctl -j links | jq -r ".[] | select(.state == \"up\") | $2"
}
ups() { up_links "$1" .device | grep -c "${2-}"; }	# VM [DEVICE]
links_are() {	# COUNT [DEVICE]: at both ends
	[ "$(ups 0 "${2-}")" = "$1" ] && [ "$(ups 1 "${2-}")" = "$1" ]
}
least_rings() { up_links "$1" '.tx_rings + .rx_rings' | sort -n | head -n 1; }
spread() {	# LEAST: rings that each link must have
	in_all rsctl links
	[ "$(least_rings 0)" -ge "$1" ] && [ "$(least_rings 1)" -ge "$1" ]
}

moves=(0 0)
remember() {
	moves_before=("${moves[@]}")
	moves=("$(counter 0 rings-moved)" "$(counter 1 rings-moved)")
	mark 0
	mark 1
}
resumed() { [ "$(grown 0 resumes)" -ge "$1" ] && [ "$(grown 1 resumes)" -ge "$1" ]; }
# A ring that the other end has just begun to move is left, and not lost: moves count from the
# mark before this one.
all_resumed() {
	local vm
	for vm in 0 1; do
		[ $(($(grown $vm resumes) + $(counter $((1 - vm)) rings-moved) -
			moves_before[1 - vm])) -ge $conns ] || return
	done
}

# Streams in both directions that have rings, and wait in mid-stream until "go".
begin() {	# NAME OPTION...
	local name=$1
	shift
	hold=$(fresh go)
	remember
	begin_streams -C $conns -t 200 "$@" --hold "$hold"
	ok "$name" wait_for 60 all_on_rings "$conns"
}
whole() {	# NAME
	in_all touch "$hold"
	whole_streams "$1"
	ok "$1: no socket remains" wait_for 20 no_sockets
}

# Drops packets for the queue pair that arrive in VM 1.
drop_qp() { on 1 nft "$(rdma_rules lost "@th,104,24 $1" drop)"; }	# QPN
drop_roce() { in_all nft "$(rdma_rules lost "iifname $1" drop)"; }	# DEVICE: in both VMs
pass() { in_all nft "add table inet lost; delete table inet lost"; }

set_net cm_timeout_ms=10000 ring_mode=1 ring_size=65536 ring_idle_ms=3600000

# ---- several links over one path ----

set_net links_per_path=4 advertise_addrs=0
begin "4 links: streams begin without a link" -n $each --hold-at 64K
ok "4 links: all are up" wait_for 20 links_are 4
in_all rsctl links | diag
whole "4 links, from none"

begin "4 links: streams begin, links are there" -n $busy --hold-at 64K
ok "4 links: streams are spread" spread $((conns / 4))
remember
qpn=$(up_links 1 .qpn | head -n 1)
moved=$(up_links 1 'select(.qpn == '"$qpn"') | .rx_rings')
ok "4 links: one is lost" drop_qp "$qpn"
ok "4 links: its streams move" wait_for 30 resumed 1
ok "4 links: they use other links" wait_for 30 all_on_rings "$conns"
pass
diag "$(grown 1 links-lost) links lost with $moved rings, $(grown 0 resumes) and $(grown 1 resumes) resumes"
whole "4 links, one lost"

# ---- another device ----

ok "a second device" second_device 0
ok "a second device at the other end" second_device 1
conns=8
for n in 1 2; do
	ok "$n links: the module is reloaded" reload links_per_path=$n
	begin "$n links: streams begin on rxe0" -n $((6 / n))M --hold-at 64K
	ok "$n links: links use rxe0" wait_for 10 links_are $n rxe0 ||
		in_all rsctl links | diag
	for vm in 0 1; do
		remember
		ok "$n links: VM $vm loses rxe$vm" rxe $vm rxe$vm del
		ok "$n links: streams resume on TCP" wait_for 30 all_resumed || {
			in_all rsctl -d sockets
			in_all rsctl -s stats
		} | diag
		ok "$n links: links use the other device" wait_for 30 links_are $n rxe$((1 - vm))
		ok "$n links: streams use these links" wait_for 30 all_on_rings "$conns"
		rxe $vm rxe$vm add
	done
	whole "$n links, devices lost"
done
ok "links between other addresses are counted" test "$(($(counter 0 links-alt-path) + $(counter 1 links-alt-path)))" -ge 1
remember
begin "RoCE dropped: streams begin" -n 3M --hold-at 64K
ok "RoCE dropped: on rxe0" drop_roce eth0
ok "RoCE dropped: links use the other device" wait_for 40 links_are 2 rxe1
ok "RoCE dropped: streams use these links" wait_for 30 all_on_rings "$conns"
whole "RoCE dropped on rxe0"
pass

# ---- a link that comes and goes ----

# how long a link lives here depends on how fast the kernel is
ok "flapping: the module is reloaded" reload advertise_addrs=0 link_flap_decay_ms=300000
begin "flapping: a stream begins" -n 3M --hold-at 64K
times=()
for ((i = 0; i < 6; i++)); do
	wait_for 60 links_are 1
	times+=("${EPOCHREALTIME/./}")
	rxe 1 rxe0 del
	rxe 1 rxe0 add
	wait_for 10 resumed 1
	remember
done
gaps=()
for ((i = 1; i < ${#times[@]}; i++)); do
	gaps+=($(((times[i] - times[i - 1]) / 1000)))
done
diag "ms from one link to the next: ${gaps[*]}"
# the last pause is at least 1600 ms
ok "flapping: the pauses between links grow" test "${gaps[-1]}" -ge 1600
ok "flapping: flaps are counted" test "$(($(counter 0 links-flapped) + $(counter 1 links-flapped)))" -ge 5
whole "flapping"
ok "the module can be unloaded" wait_for 20 unload_module
done_testing
