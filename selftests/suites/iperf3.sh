# shellcheck shell=bash disable=SC2034,SC2154	# shared with "suite"
# SPDX-License-Identifier: GPL-2.0-only
# iperf3, in both directions, by write and by sendfile.
needs="iperf3 jq"
limit=200
least=4000000

all_came() {	# BYTES OPTION...: the rest is still under way when it counts
	local bytes=$1 answer
	shift
	answer=$(iperf3 -J -c "$HOST" -n "$bytes" --connect-timeout 20000 "$@")
	jq -c '.error, .end.sum_sent.bytes, .end.sum_received.bytes' <<<"$answer"
	jq -e '.error == null and .end.sum_sent.bytes >= '"$bytes"' and
		.end.sum_received.bytes > 0' <<<"$answer" >/dev/null
}

timed() {	# OPTION...: what is under way when time is up is lost
	iperf3 -J -c "$HOST" -t 1 "$@" | jq -e '.error == null and .end.sum_received.bytes > 0'
}

run() {
	iperf3 -s -B "$HOST" >server.log &
	wait_for 20 listens 0 5201 || return
	try write all_came 4000000
	try zero-copy all_came 4000000 -Z
	try parallel all_came 4000000 -P 4
	try small all_came 200000 -l 100
	try no-delay all_came 2000000 -N -l 1000
	try buffers all_came 4000000 -w 64K
	try paced all_came 2000000 -b 20M
	try reverse timed -R
	try both-ways timed --bidir
	try parallel-reverse timed -R -P 4
	kill $!
	wait $!
	true
}
