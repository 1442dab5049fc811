#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=1 kernels=6.12,6.1,debug timeout=300 seed=1
# On small rings, whatever is sent arrives without waiting for a timer, in virtual time: a sender
# whose ring is full asks for credit, and a receiver gives it.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"

load || bail "cannot load the module"
use ring
set_net loopback=1 ring_size=32768 ring_idle_ms=600000
for addr in "$ADDR4_0" "$ADDR6_0"; do
	mark 0
	read -r rounds longest < <(rs_pauses "$addr")
	diag "$rounds rounds, the longest takes $longest ms"
	ok "$addr: all rounds are complete" test "${rounds:-0}" -gt 1000
	ok "$addr: they used rings" test "$(grown 0 ring-tx-msgs)" -gt 1000
	# a retransmission of TCP takes 200 ms, the sweep of a link 500
	ok "$addr: nothing waited for a timer" test "${longest:-1000}" -lt 100
done
ok "the module can be unloaded" wait_for 20 rmmod rdmastream
done_testing
