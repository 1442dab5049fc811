#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=2 kernels=6.12,6.1,debug timeout=400
# A link that breaks: streams on its rings end with ECONNRESET at both ends
# within seconds, nothing hangs, and new connections work.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"

load 16 || bail "cannot load the module"
limit=20	# seconds from the loss to the last reset

rings_carry() { [ "$(grown 0 ring-tx-bytes)" -gt 100000 ] && [ "$(grown 0 ring-rx-bytes)" -gt 100000 ]; }

# Streams that would go on for ever, or sit idle on their rings.
start() {	# busy|idle
	local more=()
	[ "$1" = busy ] || more=(--hold-at 1M --hold "$tmp/never")
	port=$((7000 + RANDOM % 20000))
	mark 0
	on_bg 1 rs_stream -s -k inet -p $port -C 4 -n 1000G -t 90 --expect-reset "${more[@]}" >"$tmp/server"
	server=$!
	rs_stream -c "$ADDR4_1" -k inet -p $port --wait -C 4 -n 1000G -t 90 --expect-reset "${more[@]}" >"$tmp/client" &
	client=$!
	wait_for 40 rings_carry
}

gone() { ! kill -0 "$1"; }
ended() {	# PID FILE
	wait_for $limit gone "$1"
	cat "$2"
	grep -q '"ok":true' "$2"
}

lose() {	# NAME busy|idle CMD...
	local name=$1 what=$2
	shift 2
	start "$what"
	ok "$name: $what streams are on rings" test $? = 0
	ok "$name: the link is lost" "$@"
	ok "$name: the client's $what streams are reset" ended $client "$tmp/client"
	ok "$name: the server's $what streams are reset" ended $server "$tmp/server"
	kill $client $server 2>/dev/null
	wait $client $server 2>/dev/null
}

works() {	# NAME
	ok "$1: no socket is left" wait_for $limit no_sockets
	ok "$1: a new connection works" stream inet inet -n 1M -t 30
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

flap() {
	on 1 ip link set eth0 down
	sleep 4		# longer than the retries of the RDMA device
	on 1 ip link set eth0 up
}
rxe() { on "$1" rdma link "$2" rxe0 ${3:+type rxe netdev eth0}; }

# IPv6 addresses survive "down"
in_all sysctl -q -w net.ipv6.conf.eth0.keep_addr_on_down=1
ok "a link comes up" want_link
lose "RoCE packets dropped" busy roce drop
works "RoCE packets still dropped"
roce pass
ok "a link comes up again" want_link
lose "RoCE packets dropped" idle roce drop
roce pass

ok "a link comes up again" want_link
lose "device removed" busy rxe 1 del
works "device removed"
rxe 1 add rxe
ok "a link comes up again" want_link
lose "own device removed" idle rxe 0 del
works "own device removed"
rxe 0 add rxe

ok "a link comes up again" want_link
lose "interface down and up" busy flap
rxe 1 del
rxe 1 add rxe	# rxe's own management QP does not survive that
works "interface up again"
ok "the module can be unloaded" wait_for 20 unload_module
done_testing
