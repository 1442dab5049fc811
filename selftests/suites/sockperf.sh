# shellcheck shell=bash disable=SC2034,SC2154	# shared with "suite"
# SPDX-License-Identifier: GPL-2.0-only
# sockperf: no message lost, doubled or out of order.
needs="sockperf"
limit=200

clean() {	# MODE OPTION...
	local answer
	answer=$(timeout 60 sockperf "$1" --tcp -i "$HOST" -p 11111 -t 1 "${@:2}" 2>&1)
	echo "$answer"
	! grep -qi 'error' <<<"$answer" && { [ "$1" = throughput ] ||
		grep -q 'dropped messages = 0; # duplicated messages = 0; # out-of-order messages = 0' <<<"$answer"; }
}

serve() {	# NAME OPTION...
	local name=$1 server
	shift
	sockperf server "$@" >>server.log 2>&1 &
	server=$!
	wait_for 20 listens 0 11111
	try "$name,ping-pong" clean ping-pong
	try "$name,ping-pong,large" clean ping-pong -m 60000
	try "$name,non-blocked" clean ping-pong --nonblocked
	try "$name,under-load" clean under-load --mps 200 --reply-every 10
	try "$name,throughput" clean throughput -m 1400
	kill -INT $server
	wait $server
}

run() {
	serve blocking --tcp -i "$HOST" -p 11111
	printf 'T:%s:11111\n' "$HOST" >feed
	serve epoll -f feed -F e
	serve poll -f feed -F p
	serve select -f feed -F s
	true
}
