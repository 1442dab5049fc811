#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SO_BUSY_POLL and net.core.busy_poll mean on rings what they mean on TCP: a reader, poll() and
# epoll poll the link before they sleep.  Shown by how often a program sleeps; a link polls without
# the wire that TCP would need.  Run by ../busy.sh.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/../lib.sh"

load || bail "cannot load the module"
use ring
set_net ring_idle_ms=600000
seconds=$((4 * SLOW))

trips() {	# HOW USEC: round trips, and how often the client has slept, to $tmp/trips
	# the setting is the initial namespace's
	nsenter --net=/proc/1/ns/net sysctl -q -w net.core.busy_poll="$([ "$1" = recv ] && echo 0 || echo "$2")"
	timeout $((4 * seconds)) rsctl run rs_busy -c "$ADDR4_1" 7400 "$1" $seconds usec="$2" >"$tmp/trips"
}
has() {		# sets n, slept
	read -r n slept <"$tmp/trips"
	diag "$1: $n round trips, slept $slept times"
}

on_bg 1 rsctl run rs_busy -s "$ADDR4_1" 7400
server=$!
ok "a server" wait_for 20 listens 1 7400
ok "a link comes up" want_link
for how in recv poll epoll; do
	mark 0
	ok "$how does not poll" trips $how 0
	has "$how"
	sleeps=$slept slow=$n
	ok "$how does not poll: it sleeps" test "$slept" -ge $((n / 2))
	ok "$how polls" trips $how 20000
	has "$how polls"
	ok "$how polls: it hardly sleeps" test $((10 * slept * slow)) -lt $((sleeps * n))
	ok "$how: on rings" test "$(grown 0 ring-tx-msgs)" -gt $((n / 2))
	diag "$how: $((100 * n / slow))% of the round trips of one that sleeps"
done
nsenter --net=/proc/1/ns/net sysctl -q -w net.core.busy_poll=0
kill $server
ok "no stream remains" wait_for 40 no_streams

# A program that polls for ever leaves the CPU to others.
count() { timeout 3 taskset -c 0 bash -c 'trap "echo \$n" EXIT; trap exit TERM; n=0; while :; do n=$((n + 1)); done'; }
on_bg 1 rsctl run rs_busy -s "$ADDR4_1" 7401
server=$!
ok "another server" wait_for 20 listens 1 7401
alone=$(count)
taskset -c 0 rsctl run rs_busy -c "$ADDR4_1" 7401 recv $((6 * SLOW)) usec=1000000 >/dev/null &
client=$!
sleep 2
kill -STOP $server
beside=$(count)
kill -CONT $server
diag "counted $alone alone, $beside beside a program that polls"
ok "a program that polls does not starve others" test $((4 * beside)) -gt "$alone"
wait $client
kill $server
ok "no stream remains at the end" wait_for 40 no_streams
done_testing
