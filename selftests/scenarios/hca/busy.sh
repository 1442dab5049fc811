#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# SO_BUSY_POLL, net.core.busy_poll, net.core.busy_read and SO_PREFER_BUSY_POLL mean on rings what
# they mean on TCP: a reader, poll() and epoll poll the link before they sleep.  Shown by how often a
# program sleeps, and by its CPU time; a link polls without the wire that TCP would need.  Run by
# ../busy.sh.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/../lib.sh"

load || bail "cannot load the module"
use ring
set_net ring_idle_ms=600000
seconds=$((4 * SLOW))

# the settings are the initial namespace's
core() { nsenter --net=/proc/1/ns/net sysctl -q -w "${@/#/net.core.}"; }	# NAME=VALUE...
# round trips, and how often the client has slept, to $tmp/trips
trips() {	# HOW USEC [NAME=VALUE...]
	core busy_poll="$([ "$1" = recv ] && echo 0 || echo "$2")"
	timeout $((4 * seconds)) rsctl run rs_busy -c "$ADDR4_1" 7400 "$1" $seconds usec="$2" "${@:3}" >"$tmp/trips"
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
core busy_poll=0

# A reader that waits 20 times for nothing.  It may poll for 50 ms, then it sleeps for 50 ms.
waits() {	# [NAME=VALUE...] [-- COMMAND...]: CPU time, and how often it has slept, to $tmp/waits
	mark 0
	timeout $((20 * SLOW)) rsctl run rs_busy -w "$ADDR4_1" 7400 "$@" >"$tmp/waits"
}
used() {	# sets ms, slept
	read -r ms slept <"$tmp/waits"
	diag "$1: $ms ms of CPU time, slept $slept times"
}
polls() { [ "$slept" -ge 20 ] && [ "$ms" -ge 500 ]; }
does_not_poll() { [ "$slept" -ge 20 ] && [ "$ms" -lt 250 ]; }
on_ring() { test "$(grown 0 ring-rx-msgs)" -gt 50; }

ok "busy_read is 0" waits
used "busy_read is 0"
ok "busy_read is 0: does not poll" does_not_poll
ok "busy_read is 0: on rings" on_ring
ok "busy_read is set later" waits -- nsenter --net=/proc/1/ns/net sysctl -q -w net.core.busy_read=50000
used "busy_read is set later"
ok "busy_read is set later: does not poll" does_not_poll
ok "busy_read is set later: on rings" on_ring
ok "busy_read is set before" waits
used "busy_read is set before"
ok "busy_read is set before: polls, and then sleeps" polls
ok "busy_read is set before: on rings" on_ring
ok "SO_BUSY_POLL is 0, whatever busy_read is" waits usec=0
used "SO_BUSY_POLL is 0, whatever busy_read is"
ok "SO_BUSY_POLL is 0, whatever busy_read is: does not poll" does_not_poll
core busy_read=0

# The polls with a budget that only these programs have.
trace=/sys/kernel/tracing
[ -d $trace/events ] || mount -t tracefs tracefs $trace || bail "no tracing"
watch() {	# BUDGET
	echo "budget == $1" >$trace/events/napi/napi_poll/filter &&
		echo >$trace/trace && echo 1 >$trace/events/napi/napi_poll/enable
}
seen() { grep -q "budget $1\$" $trace/trace; }
watch 3
ok "SO_PREFER_BUSY_POLL" waits usec=50000 prefer=1 budget=3
used SO_PREFER_BUSY_POLL
ok "SO_PREFER_BUSY_POLL: polls, and then sleeps" polls
ok "SO_PREFER_BUSY_POLL: on rings" on_ring
ok "SO_PREFER_BUSY_POLL: the budget is that of SO_BUSY_POLL_BUDGET" seen 3
echo 0 >$trace/events/napi/napi_poll/enable
# Those of epoll are not the socket's.
for how in recv poll; do
	for budget in 1 65535; do
		mark 0
		ok "$how prefers it, budget $budget: bytes arrive" trips $how 20000 prefer=1 budget=$budget
		has "$how prefers it, budget $budget"
		ok "$how prefers it, budget $budget: on rings" test "$(grown 0 ring-tx-msgs)" -gt $((n / 2))
	done
done
core busy_poll=0

# What can be set, by whom, and what it is then.
noadmin() { setpriv --bounding-set=-net_admin --inh-caps=-net_admin "$@"; }
options() {	# [COMMAND...]: are they as with TCP?
	mark 0
	"$@" timeout $((20 * SLOW)) rs_busy -o "$ADDR4_1" 7400 >"$tmp/tcp" && ! on_ring || return
	mark 0
	"$@" timeout $((20 * SLOW)) rsctl run rs_busy -o "$ADDR4_1" 7400 >"$tmp/here" &&
		diff "$tmp/tcp" "$tmp/here"
}
ok "the options: as with TCP" options
ok "the options: on rings" on_ring
ok "the options: CAP_NET_ADMIN may" grep -q "^prefer 1 None 1$" "$tmp/here"
ok "the options, without CAP_NET_ADMIN: as with TCP" options noadmin
ok "the options, without CAP_NET_ADMIN: on rings" on_ring
ok "the options, without CAP_NET_ADMIN: refused" grep -q "^prefer 1 EPERM 0$" "$tmp/here"
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
