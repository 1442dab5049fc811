#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=1 stock=6.12,6.1 timeout=300
# The kernel uses an rdmastream socket: a network block device.  Restrictions that the owner
# of such a socket has set remain in effect; so do those of Landlock.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"

programs=$(realpath "$(dirname "$0")/../programs")
load || bail "cannot load the module"
set_net loopback=1

# Landlock, which the User-Mode Linux kernels do not have
forbidden() { rs_api -f landlock -k "$1" -l "$(addr "$1" 0)" | tee "$tmp/api"; }
for kind in tcp4 inet rds4 tcp6 inet6 rds6; do
	if forbidden $kind | grep -q '# SKIP'; then
		skip "Landlock forbids TCP, $kind" "no such rules in this kernel"
	else
		ok "Landlock forbids TCP, $kind" grep '^ok .*landlock' "$tmp/api"
	fi
done

if ! modprobe nbd nbds_max=1 2>/dev/null; then
	skip "a block device over nbd" "no nbd in this kernel"
	done_testing
fi

[ -e /sys/kernel/tracing/trace ] || mount -t tracefs none /sys/kernel/tracing 2>/dev/null

nbd() { timeout 120 python3 "$programs/rs_nbd.py" "$ADDR4_0" /dev/nbd0 >"$tmp/said"; }

own_fragments() {
	cat "$tmp/said"
	grep -q 'of the socket [1-9].* of tasks 0$' "$tmp/said"
}

block_device() {	# HOW
	ok "$1: blocks are read as they were written" nbd
	if grep -q fragments "$tmp/said"; then
		ok "$1: requests are copied into the socket's own fragment" own_fragments
	else
		skip "$1: requests are copied into the socket's own fragment" "no kprobes in this kernel"
	fi
}

use tcp
block_device tcp
use ring
hurry
block_device ring
done_testing
