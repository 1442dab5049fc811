#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=2 kernels=6.12,6.1,debug timeout=600
# The link is lost at difficult moments: while programs close, half-close, abort, linger or do
# not read, while connections wait to be accepted, and while many are opened and closed.
# Programs see the same as with plain TCP.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"
loss=$(dirname "$0")/loss.sh

load 14 1500 || bail "cannot load the module"
use ring
in_all sysctl -q -w net.ipv4.tcp_fin_timeout=3
# Streams wait for each other until all have rings.
set_net ring_idle_ms=600000

moments() {	# NAME KIND CUT MEND [PATTERN]
	local server
	hurry
	on_bg 1 rs_moments -s -p 7300 >"$tmp/far" 2>&1
	server=$! start=$SECONDS
	retell "$1" < <(rs_moments -c "$(addr "$2" 1)" -k "$2" -p 7300 \
		--cut "$loss $3" --mend "$loss $4" -P "${5-}" 2>&1)
	diag "$1: $((SECONDS - start)) s"
	kill $server 2>/dev/null
	wait $server 2>/dev/null
	ok "$1: no socket remains" wait_for 20 no_sockets
}

moments "nothing lost, TCP" tcp4 true true
moments "device of VM 1 removed" inet "del 1" "add 1"
moments "both devices removed, IPv6" inet6 del add
moments "RoCE dropped in VM 0" inet "drop 0" "pass 0"
moments "RoCE dropped in VM 1, IPv6" inet6 "drop 1" "pass 1"
for vm in 0 1; do
	moments "driver of VM $vm unloaded" inet "unload $vm" "load $vm"
done
moments "three losses" inet drop pass again
moments "nothing gets through" inet "drop-all 1" "pass 1" outage

# Links are lost as soon as they come up, while streams switch to rings or end.
storms=2 connects=100
[ "$KERNEL" != debug ] || storms=1 connects=40

flap() {
	local vm
	until [ -e "$tmp/stop" ]; do
		wait_for 5 has_link $((RANDOM % 2)) || continue
		vm=$((RANDOM % 2))
		"$loss" del $vm
		"$loss" add $vm
		hurry
		echo >>"$tmp/flaps"
	done
}

flapped() { [ "$(grown 0 links-lost)" -gt 1 ]; }

storm() {	# MODE
	local pid status=0 port=$((7000 + RANDOM % 20000))
	on_bg 1 rs_storm -s -k inet -p $port -n $connects -t 100
	pid=$!
	wait_for 10 listens 1 $port || status=1
	rs_storm -c "$ADDR4_1" -k inet -p $port -n $connects -t 100 -m "$1" || status=1
	wait $pid || status=1
	return $status
}

mark 0
flap 2>/dev/null &
flapper=$!
# On a slow machine, establishing a link may take longer than a round.
i=0
until [ $i -ge $storms ] && { [ $i -ge 5 ] || flapped; }; do
	i=$((i + 1))
	for mode in close byte rst unread; do
		ok "links flap: $connects connects, $mode" storm $mode
	done
	ok "links flap: short streams" stream inet inet -C 30 -n 20K -t 100
	ok "links flap: short streams, epoll" stream inet inet -C 30 -n 50K -e -t 100
	ok "links flap: half-closed streams" stream inet inet -C 10 -n 200K --half-close -t 100
done
touch "$tmp/stop"
wait $flapper
ok "links were lost meanwhile" flapped
diag "links up $(grown 0 links-up), lost $(grown 0 links-lost), streams resumed $(grown 0 resumes)"
ok "links flap: no socket remains" wait_for 60 no_sockets
counters 0 | grep '^reason:' | diag
ok "the module can be unloaded" wait_for 20 unload_module
done_testing
