# shellcheck shell=bash disable=SC2034,SC2154	# shared with "suite"
# SPDX-License-Identifier: GPL-2.0-only
# socat as a relay: every byte arrives, and so do the ends of streams.
needs="socat"
limit=240
quick=yes

files() {
	head -c 1000000 /dev/urandom >large
	head -c 10000 /dev/urandom >small
}

echoed() {	# PORT FILE: back comes what went, then the end
	timeout 60 socat -t 60 - "TCP:$HOST:$1" <"$2" | cmp - "$2"
}

several() {	# PORT
	local i status=0 pids=()
	for i in 1 2 3 4; do
		echoed "$1" large &
		pids+=($!)
	done
	for i in "${pids[@]}"; do
		wait "$i" || status=1
	done
	return $status
}

run() {
	local pids=()
	files
	socat -t 60 "TCP-LISTEN:9001,bind=$HOST,fork,reuseaddr,backlog=32" EXEC:cat &
	pids+=($!)
	socat -t 60 "TCP-LISTEN:9003,bind=$HOST,fork,reuseaddr,backlog=32" "TCP:$HOST:9001" &
	pids+=($!)
	wait_for 30 listens 0 9001 && wait_for 30 listens 0 9003 || return
	try small echoed 9001 small
	try large echoed 9001 large
	try several several 9001
	try relayed echoed 9003 large
	try relayed,several several 9003
	kill "${pids[@]}"
	wait
	true
}
