#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=1 kernels=6.12,6.1,debug timeout=480 append=kmemleak=on
# Random system calls and netlink requests by several threads, guided by the module's coverage
# if the kernel supports that (debug).  The kernel must not report anything, and nothing must
# be leaked.  "scripts/calls" sets CALLS_SECONDS and CALLS_SEED, or CALLS_REPLAY, a file of
# programs, and CALLS_TIMES.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"

load || bail "cannot load the module"
# broken links are soon established again; rings are granted at once and taken back soon
set_net ring_mode=1 loopback=1 ring_threshold=4096 ring_idle_ms=1000 link_flap_decay_ms=100 \
	hello_timeout_ms=1000
mark 0

out=${RESULTS:-$tmp}/calls
run=(rs_calls -4 "$ADDR4_0" -6 "$ADDR6_0")
if [ -n "${CALLS_REPLAY:-}" ]; then
	run+=(-r -n "${CALLS_TIMES:-1}" "$CALLS_REPLAY")
else
	run+=(-t "${CALLS_SECONDS:-60}" -o "$out" ${CALLS_SEED:+-s "$CALLS_SEED"})
fi
"${run[@]}" 2>&1 | sed -u "s/^/# /"
ok "random calls" test "${PIPESTATUS[0]}" = 0 || done_testing
diag "bytes by rings: $(grown 0 ring-tx-bytes), by TCP: $(grown 0 tcp-tx-bytes); links: $(grown 0 links-up)"
[ -n "${CALLS_REPLAY:-}" ] || ok "they came to rings" test "$(grown 0 ring-tx-bytes)" -gt 1000000
# If socket options (an MD5 key, another device) prevent TCP from receiving anything, it
# retransmits for 102 to 205 seconds, because its timer doubles
ok "no socket remains" wait_for 240 no_sockets || {
	rsctl -d sockets
	ss -tanoi | grep -v TIME-WAIT
} | diag
ok "the module can be unloaded" wait_for 40 unload_module
if [ -e /sys/kernel/debug/kmemleak ]; then
	ok "no memory leaks" kmemleak_check
fi
done_testing
