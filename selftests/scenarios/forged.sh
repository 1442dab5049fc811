#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=2 kernels=6.12,6.1,debug timeout=600
# A forged message ends the link: a write with a wrong key, an unknown message, a repeated
# message.  The streams continue over TCP, and every byte is correct.  Any user of a host can forge
# one that way, unless a firewall rule prevents it.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=selftests/scenarios/survive-lib.sh
. "$(dirname "$0")/survive-lib.sh"
# shellcheck source=selftests/scenarios/rdma-ports.sh
. "$(dirname "$0")/rdma-ports.sh"

# Repeat until the link has ended.
forge() {	# rs_forge's HOW [SOURCE]
	local try
	for try in {1..15}; do
		rs_forge -t 3 "$@" "$ADDR4_1" || return
		[ "$(grown 0 links-lost)" = 0 ] || return 0
	done
	echo "not noticed after $try times"
	return 1
}

for what in busy idle; do
	lose "queue pair in error" $what forge bad-key
	whole "queue pair in error, $what"
	lose "message of no meaning" $what forge bad-message
	whole "message of no meaning, $what"
done
# A repeated message would count bytes that were never sent.
on_bg 1 "exec rs_autocork serve 7000"
server=$!
wait_for 20 listens 1 7000
for try in 1 2; do
	ok "message repeated, $try: a link is up" want_link
	remember
	rs_autocork turns "$ADDR4_1" 7000 $((5000 / SLOW)) &
	client=$!
	ok "message repeated, $try: the link is lost" forge repeated
	wait $client
	ok "message repeated, $try: all data is correct" test $? = 0
done
kill $server
wait $server 2>/dev/null

lose "packet of a user" idle forge user "$ADDR4_0"
whole "packet of a user, idle"

# soft-RoCE's own packets have a socket, too, but no user.
protect() {
	nft "add table inet roce;
		add chain inet roce out { type filter hook output priority 0; };
		add rule inet roce out ${rdma_nft[0]} meta skuid != 0 drop"
}
refused() {
	rs_forge -t 3 user "$ADDR4_0" "$ADDR4_1" >"$tmp/forged" || return
	cat "$tmp/forged"
	grep -q '^0 packets sent' "$tmp/forged"
}
none_lost() { [ "$(grown 0 links-lost)$(grown 1 links-lost)" = 00 ]; }
name="packet of a user, firewall"
ok "$name: a rule for those of users" protect
ok "$name: a link comes up" want_link
start idle
ok "$name: streams use rings" test $? = 0
remember
ok "$name: none is sent" refused
ok "$name: the link stays" none_lost
ok "$name: streams stay on rings" have_rings
whole "$name"
ok "$name: the rest went by rings" rings_carry
ok "$name: no link was lost" none_lost
nft delete table inet roce

ok "the module can be unloaded" wait_for 20 unload_module
done_testing
