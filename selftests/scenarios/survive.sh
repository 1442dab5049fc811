#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=2 kernels=6.12,6.1,debug timeout=400
# The link under streams dies, in many ways: they go on over TCP and return to
# RDMA, and no program notices.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"

load 14 || bail "cannot load the module"
size=64M
[ "$KERNEL" != debug ] || size=16M

rings_carry() { [ "$(grown 0 ring-tx-bytes)" -gt 500000 ] && [ "$(grown 0 ring-rx-bytes)" -gt 500000 ]; }
resumed() { [ "$(grown 0 resumes)" -gt 0 ] && [ "$(grown 1 resumes)" -gt 0 ]; }

# Streams with checked bytes in both directions, on rings.
start() {	# [RS_STREAM-OPTION...]
	port=$((7000 + RANDOM % 20000))
	mark 0
	mark 1
	on_bg 1 rs_stream -s -k inet -p $port -C 4 -n $size -t 150 "$@" >"$tmp/server"
	server=$!
	rs_stream -c "$ADDR4_1" -k inet -p $port --wait -C 4 -n $size -t 150 "$@" >"$tmp/client" &
	client=$!
	wait_for 40 rings_carry
}

gone() { ! kill -0 "$1"; }
finished() {	# PID FILE
	wait_for 160 gone "$1"
	cat "$2"
	grep -q '"ok":true' "$2"
}

survives() {	# NAME CMD...: the loss
	local name=$1
	shift
	ok "$name: a link is up" want_link
	start
	ok "$name: streams are on rings" test $? = 0
	ok "$name: the link is lost" "$@"
	ok "$name: streams go on over TCP" wait_for 20 resumed
}

content() {	# NAME
	ok "$1: the client's streams are whole" finished $client "$tmp/client"
	ok "$1: the server's streams are whole" finished $server "$tmp/server"
	kill $client $server 2>/dev/null
	wait $client $server 2>/dev/null
	ok "$1: no socket is left" wait_for 20 no_sockets
}

roce() {	# drop|pass, in both VMs
	if [ "$1" = drop ]; then
		in_all nft "add table inet lost;
			add chain inet lost in { type filter hook prerouting priority -400; };
			add rule inet lost in udp dport 4791 drop"
	else
		in_all nft delete table inet lost
	fi
}

survives "RoCE packets dropped" roce drop
content "RoCE packets dropped"
roce pass
rsctl -s stats
done_testing
