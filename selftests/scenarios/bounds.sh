#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=1 kernels=6.12,6.1,debug timeout=300 mem=2048
# The numeric limits on peers, sending ends and cells are reached (linktest.ko: links without
# sockets).  Anything beyond is refused, and all memory is freed at the end.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"

: "${TESTS:=$(dirname "$MODULE").test}"	# with linktest.ko, built as rs_hca.ko is

memory() {	# KiB that are free when nothing is kept for later
	echo 3 >/proc/sys/vm/drop_caches
	awk '/^MemFree:/ { print $2 }' /proc/meminfo
}
# The kernel itself uses some MiB; a peer takes 4 KiB, a sending end 512 bytes.
memory_is_back() {
	local now
	now=$(memory)
	echo "free before: $free KiB, now: $now"
	[ "$now" -gt $((free - 16 * 1024 * SLOW)) ]
}

modprobe -a ib_core rdma_cm
free=$(memory)
ok "limits of links without sockets" insmod "$TESTS/linktest.ko" role=bounds addr="$ADDR4_0"
retell "bounds" < <(dmesg | sed -n 's/^\[[^]]*\] linktest: //p')
ok "the module can be unloaded" rmmod linktest
ok "all memory is freed" wait_for 20 memory_is_back
diag "$(memory_is_back)"
done_testing
