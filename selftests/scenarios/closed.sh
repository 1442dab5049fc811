#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=1 kernels=6.12,6.1,debug timeout=300 seed=1
# How long a closed socket stays whose peer takes no data, or little: no longer than TCP's
# orphans.  It takes minutes of virtual time.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"

load || bail "cannot load the module"
set_net loopback=1

declare -A ends=() gones=()
closed() {	# HOW: sets gone, end
	local size
	read -r gone end size < <(rs_closed "$ADDR4_0" "$1")
	diag "$how, $1: gone after $gone s, $end; $size bytes"
}

for how in raw tcp; do
	use $how
	for peer in silent still drip; do
		closed $peer
		ends[$how,$peer]=$end gones[$how,$peer]=$gone
	done
done
ok "a peer that is silent: it ends as soon as TCP's, but for a look" \
	test "${gones[tcp,silent]}" -le $((${gones[raw,silent]} + 45))
ok "a peer that does not read: it ends no later than TCP's" \
	test "${gones[tcp,still]}" -le "${gones[raw,still]}"
ok "a peer that reads little: all is delivered" test "${ends[tcp,drip]}" = eof
ok "a peer that reads little: TCP delivers all, too" test "${ends[raw,drip]}" = eof
mark 0
how=ring
use ring
ok "a link comes up" want_link_between 0 0 30 has_link 0
for peer in still drip; do
	closed $peer
	ends[$how,$peer]=$end gones[$how,$peer]=$gone
done
ok "on a ring: a peer that does not read" test "${gones[ring,still]}" -le "${gones[raw,still]}"
ok "on a ring: a peer that reads little" test "${ends[ring,drip]}" = eof
ok "on a ring: that was one" test "$(grown 0 ring-tx-bytes)" -gt 500000
how=tcp
use tcp
max_orphans=$(sysctl -n net.rdmastream.max_orphans)
set_net max_orphans=1
mark 0
closed drip
ok "a peer that reads little counts for two: beyond max_orphans it is reset" test "$end" = reset
ok "a peer that reads little: reset when it is looked at first" test "$gone" -le 40
ok "a peer that reads little: the reason is orphan-limit" test "$(grown 0 reason:orphan-limit)" = 1
set_net max_orphans="$max_orphans"

ok "no socket is left" wait_for 20 no_sockets
ok "the module can be unloaded" wait_for 20 unload_module
done_testing
