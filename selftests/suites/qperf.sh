# shellcheck shell=bash disable=SC2034,SC2154	# shared with "suite"
# SPDX-License-Identifier: GPL-2.0-only
# qperf: its tests of TCP.
needs="qperf"
limit=120
quick=yes

run() {
	local size
	qperf &
	wait_for 20 listens 0 19765 || return
	try version qperf "$HOST" conf
	for size in 1 4K 1M; do
		try "bandwidth,$size" timeout 30 qperf -t 1 -m $size "$HOST" tcp_bw
	done
	for size in 1 64K; do
		try "latency,$size" timeout 30 qperf -t 1 -m $size "$HOST" tcp_lat
	done
	try quit qperf "$HOST" quit
	wait $!
}
