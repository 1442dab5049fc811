#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Takes RDMA away from hosts, and gives it back; for scenarios, in VM 0.
#
# usage: loss.sh WHAT [VM...]		in these VMs, or in all
#   drop, pass		packets of RDMA that come in
#   drop-all, pass	all packets that come in
#   del, add		the RDMA device
#   unload, load	the RDMA device's driver
#   down, up		the network interface, with all that is on it
set -u
: "${VM_COUNT:?}"
# shellcheck source=selftests/scenarios/rdma-ports.sh
. "$(dirname "$0")/rdma-ports.sh"
case $RDMA in
rxe)	driver=rdma_rxe ;;
siw)	driver=siw ;;
esac

one() {	# WHAT VM
	case $1 in
	drop)	on "$2" nft "$(rdma_rules lost drop)" ;;
	drop-all)	on "$2" nft "add table inet lost;
			add chain inet lost in { type filter hook prerouting priority -400; policy drop; }" ;;
	pass)	on "$2" nft delete table inet lost ;;
	del)	on "$2" rdma link del "${RDMA}0" ;;
	add)	on "$2" rdma link add "${RDMA}0" type "$RDMA" netdev eth0 ;;
	unload)	on "$2" modprobe -r "$driver" ;;
	load)	on "$2" modprobe "$driver" && one add "$2" ;;
	down | up)	on "$2" ip link set eth0 "$1" ;;
	*)	return 2 ;;
	esac
}

what=$1 status=0 pids=()
shift
# shellcheck disable=SC2046
[ $# != 0 ] || set -- $(seq 0 $((VM_COUNT - 1)))
for vm; do
	one "$what" "$vm" &
	pids+=($!)
done
for pid in "${pids[@]}"; do
	wait "$pid" || status=1
done
exit $status
