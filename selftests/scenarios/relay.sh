#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=3 kernels=6.12,6.1,debug timeout=400
# A sends to C through B, which splices from one rdmastream socket to another: every byte
# arrives, B copies it once, from the ring, and a receiver that does not read stops the sender.
# MEASURE=yes [MIB=N]: only compares the CPU time of B with that of a relay that receives and sends.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"

# the hub between three guests loses packets, so retransmit soon
load 16 || bail "cannot load the module"
set_net ring_idle_ms=600000
mib=$((1024 * 1024))
total=$((12 * mib)) relay_options=()
[ "$KERNEL" != debug ] || total=$((3 * mib))

# A is VM 0, B is 1, C is 2.
b_has_links() { [ "$(on 1 rsctl -j links | jq '[.[] | select(.state == "up")] | length')" = 2 ]; }
want_links() { want_link 30 && want_link_between 1 2 60 b_has_links; }

start() {	# CONNS A'S-WAY C'S-OPTION...
	local conns=$1 way=$2
	shift 2
	port=$((7000 + RANDOM % 20000))
	for vm in 0 1 2; do
		mark $vm
	done
	on_bg 2 rs_stream -s -k inet -p $port -C "$conns" -n "$total" -R splice -t 200 "$@" >"$tmp/c"
	c=$!
	ok "C listens" wait_for 20 listens 2 $port
	on_bg 1 rs_relay -k inet -p $port -c "$ADDR4_2" -C "$conns" -b 256K "${relay_options[@]}" >"$tmp/b"
	b=$!
	ok "B listens" wait_for 20 listens 1 $port
	rs_stream -c "$ADDR4_1" -k inet -p $port -C "$conns" -n "$total" -W "$way" -t 200 >"$tmp/a" &
	a=$!
}

finish() {	# NAME
	wait $a
	ok "$1: A succeeds" test $? = 0
	wait $b
	ok "$1: B succeeds" test $? = 0
	wait $c
	ok "$1: C succeeds" test $? = 0
	cat "$tmp/a" "$tmp/b" "$tmp/c" | diag
}

# What is spliced from a ring is copied; what arrives by TCP is copied only if it is in the heads of
# packets, as with TCP.  The pages of the pipe are sent in place.
b_copied_once() {	# CONNS
	growth 1 | awk -v bytes=$((2 * $1 * total)) '
		{ n[$1] = $2 }
		END {
			printf "B: %d bytes: spliced %d copied %d, sent %d copied %d, by rings %d %d, tcp %d\n",
				bytes, n["spliced-page-bytes"], n["spliced-copy-bytes"],
				n["sent-page-bytes"], n["sent-copy-bytes"],
				n["ring-rx-bytes"], n["ring-tx-bytes"], n["tcp-rx-bytes"]
			exit !(n["spliced-page-bytes"] + n["spliced-copy-bytes"] == bytes &&
			       n["sent-page-bytes"] + n["sent-copy-bytes"] == bytes &&
			       n["spliced-copy-bytes"] >= n["ring-rx-bytes"] &&
			       n["sent-copy-bytes"] <= bytes / 100 &&
			       n["ring-rx-bytes"] > bytes / 2 && n["ring-tx-bytes"] > bytes / 2)
		}'
}

busy() { on 1 cat /proc/stat | awk '/^cpu / { print ($2 + $3 + $4 + $7 + $8) * 10 }'; }	# ms
measure() {
	local before option n=2
	for option in "" -r "" -r "" -r; do
		relay_options=(${option:+"$option"})
		before=$(busy)
		start $n sendfile
		finish "${option:-splice}"
		diag "${option:-splice}: $((2 * n * total / mib)) MiB, guest $(($(busy) - before)) ms," \
			"process $(jq .cpu_us "$tmp/b") us, by rings $(grown 1 ring-rx-bytes)," \
			"copied $(grown 1 spliced-copy-bytes)"
	done
}

use ring
ok "links come up" want_links
if [ "${MEASURE:-no}" = yes ]; then
	total=$((${MIB:-64} * mib))
	measure
	done_testing
	exit
fi
start 1 sendfile
finish "relayed"
ok "relayed: B copies once" b_copied_once 1
growth 1 | grep -v ' 0$' | tr '\n' ' ' | diag
start 3 zerocopy
finish "three at once"
ok "three at once: B copies once" b_copied_once 3

# C does not read: what A has sent must fit into the buffers on the way.
sent() { echo $(($(grown 0 tcp-tx-bytes) + $(grown 0 ring-tx-bytes))); }
held_up() {	# nothing has been sent for some time
	local now
	now=$(sent)
	[ "$now" = "$between" ] || between=$now since=$SECONDS
	[ "$now" -gt 0 ] && [ $((SECONDS - since)) -ge 3 ]
}
go=$tmp/go between=0 since=$SECONDS
start 1 plain --hold-at 0 --hold "$go"
ok "back-pressure: A has to wait" wait_for 40 held_up
between=$(sent)
diag "A could send $between of $total bytes"
ok "back-pressure: only buffers' worth of data is in flight" test "$between" -lt $((total * 2 / 3))
on 2 touch "$go"
finish "back-pressure"
ok "back-pressure: B copies once" b_copied_once 1

ok "no socket remains" wait_for 20 no_sockets
ok "the module can be unloaded" wait_for 20 unload_module
done_testing
