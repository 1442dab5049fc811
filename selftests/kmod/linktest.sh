#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Runs linktest.ko between VM 0 (client) and VM 1 (server), or in VM 0 alone.  By hand: nothing runs
# this script, and make check only runs role=bounds, as scenario bounds.
#
# usage: selftests/vm/run -n 2 -k KERNEL -- selftests/kmod/linktest.sh MODULE CASE
# CASE: data, self, loss, drop, idle, small (little receive memory)
set -u
# shellcheck source=selftests/scenarios/rdma-ports.sh
. "$(dirname "$0")/../scenarios/rdma-ports.sh"
module=$1 case=${2:-data} rounds=${3:-6} mbytes=${4:-2}

load() {	# load VM WORD...: the stack below, then the module
	local vm=$1; shift
	on "$vm" "modprobe -a ib_core rdma_cm && insmod $module dyndbg=+p $*"
}
result() {	# result VM ENDS: waits for the TAP lines of the module, one for each end
	local i
	for ((i = 0; i < 240; i++)); do
		on "$1" "[ \$(dmesg | grep -cE '\] linktest: (not )?ok ') = $2 ]" && break
		sleep 0.5
	done
	on "$1" "dmesg | grep '\] linktest: ' | tail -$((12 * $2)); cat /sys/module/linktest/parameters/report"
	on "$1" "[ \$(dmesg | grep -c '\] linktest: ok ') = $2 ]"
}
common="rounds=$rounds mbytes=$mbytes"
case $case in
loss | drop) common+=" losses=20" ;;
idle) common+=" idle_ms=2000" ;;
small) common+=" rmb_kib=64 ring_kib=16" ;;
esac

if [ "$case" = self ]; then
	load 0 role=self addr="$ADDR4_0" $common
	result 0 2
	status=$?
	on 0 rmmod linktest || status=1
	exit $status
fi
load 1 role=server $common || exit 1
load 0 role=client addr="$ADDR4_1" $common || exit 1
case $case in
loss)
	sleep 4
	on 1 "rdma link del rxe0; sleep 2; rdma link add rxe0 type rxe netdev eth0"
	sleep 4
	rdma link del rxe0; sleep 1; rdma link add rxe0 type rxe netdev eth0
	;;
drop)
	sleep 4
	on 1 "nft '$(rdma_rules lost drop)'; sleep 4; nft delete table inet lost"
	;;
esac
status=0
result 0 1 || status=1
result 1 1 || status=1
if [ "$case" = idle ]; then
	sleep 5
	on 0 "cat /sys/module/linktest/parameters/report" | grep -q 'LINKS_IDLE\|LINKS_LOST' || status=1
	on 0 "cat /sys/module/linktest/parameters/report"
fi
on 1 rmmod linktest || status=1
on 0 rmmod linktest || status=1
exit $status
