# shellcheck shell=bash disable=SC2034,SC2154	# shared with "suite"
# SPDX-License-Identifier: GPL-2.0-only
# rstream of librdmacm on sockets of the kernel.
needs="rdmacm-utils"
limit=200

stream() {	# OPTION...
	local server status=0
	timeout 60 rstream -T s -p 7471 "$@" >server.log &
	server=$!
	wait_for 20 listens 0 7471
	timeout 60 rstream -T s -s "$HOST" -p 7471 "$@" || status=1
	wait $server || status=1
	return $status
}

run() {
	try plain stream -S 65536 -C 20 -T v
	try asynchronous stream -S 65536 -C 20 -T a -T v
	try blocking stream -S 65536 -C 20 -T b -T v
	try non-blocking stream -S 65536 -C 20 -T n -T v
	try resolved stream -S 65536 -C 20 -T r -T v
	try "one byte" stream -S 1 -C 500 -T v
	try large stream -S 1000000 -C 5 -T v
	try "many at once" stream -S 4096 -C 10 -I 20 -T v
	try "all sizes" stream -I 4 -C 4 -S all
}
