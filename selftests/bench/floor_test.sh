#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Does rs_floor.ko measure, and does it leave nothing behind, whichever end goes first?
#
# usage: selftests/vm/run -n N -k KERNEL [-a kmemleak=on] -- selftests/bench/floor_test.sh MODULE
# N: 1 or 2; with one VM it is its own peer.
set -u
module=$1
# shellcheck source=/dev/null
. "$LAB"

peer=$((VM_COUNT - 1)) to=ADDR4_$((VM_COUNT - 1))
to=${!to}
with=()
[ "$peer" != 0 ] || with=(self=1)

client() {	# ARG...: its result
	insmod "$module" addr="$to" "${with[@]}" "$@" || return
	cat /sys/module/rs_floor/parameters/result
	rmmod rs_floor
}

measures() {	# ARG...
	local said
	said=$(client "$@" | tr '\n' ' ')
	ok "$*: $said" [ "${said#*ns [1-9]}" != "$said" ]
}

quiet() {	# N: VM N has no PDs and no CQs of the module
	! { on "$1" rdma res show pd; on "$1" rdma res show cq; } | grep -q rs_floor
}

fails() { ! "$@"; }

in_all modprobe rdma_cm
modprobe rdma_cm
[ "$peer" = 0 ] || on "$peer" insmod "$module" || exit 1
for mode in softirq workqueue direct; do
	[ "$VM_COUNT-$mode" != 1-direct ] || continue	# one CPU for two that spin
	for size in 64 4096 65536; do
		measures op=rtt size=$size mode=$mode ms=250
	done
	for size in 65536 $((1 << 20)); do
		measures op=write size=$size mode=$mode ms=500
	done
done
measures op=rtt size=64 count=500
measures op=write size=$((2 << 20)) ms=300
measures op=write size=1 ms=300
ok "a nonsensical size is refused" fails client op=rtt size=0
ok "an unknown mode is refused" fails client mode=none
ok "nothing is left of the connections" wait_for 20 quiet 0
[ "$peer" = 0 ] || ok "nor at the peer" wait_for 20 quiet "$peer"

ok "a client that is interrupted leaves nothing" \
	fails timeout -s INT 2 insmod "$module" addr="$to" "${with[@]}" op=write size=65536 ms=60000
measures op=rtt size=64

if [ "$peer" != 0 ]; then
	insmod "$module" addr="$to" op=write size=65536 mode=direct ms=60000 2>/dev/null &
	client=$!
	ok "a client is busy" wait_for 20 fails quiet 0
	ok "so is the server" wait_for 20 fails quiet "$peer"
	ok "a server may go while a client is busy" on "$peer" rmmod rs_floor
	ok "the client then fails" fails wait $client
	ok "without a server it fails" fails client op=rtt size=64

	on "$peer" insmod "$module"
	insmod "$module" addr="$to" op=rtt size=64 ms=60000 2>/dev/null &
	client=$!
	ok "a client is busy again" wait_for 20 fails quiet 0
	ok "a device may go while it is used" rdma link del rxe0
	ok "the client fails then, too" fails wait $client
	rdma link add rxe0 type rxe netdev eth0
	ok "the peer notices nothing, its module can go" on "$peer" rmmod rs_floor
fi
ok "nobody uses the module" fails grep -q ^rs_floor /proc/modules
if echo scan 2>/dev/null >/sys/kernel/debug/kmemleak; then
	sleep 6
	echo scan >/sys/kernel/debug/kmemleak
	ok "nothing has leaked" fails grep -A 20 'unreferenced' /sys/kernel/debug/kmemleak
fi
done_testing
