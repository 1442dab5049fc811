#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=2 kernels=6.12,6.1,debug timeout=200
# A link dies before the SWITCH to its ring has come.  What has landed is copied, so that the
# ring's memory is free.  What is spliced from that copy is right, even after the stream has left
# the ring.  Likewise if the connection was reset, and the program keeps the socket.  While the link
# lives, the ring of a socket that is kept is taken back, or dropped, as any that is idle.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"

load || bail "cannot load the module"
set_net ring_idle_ms=3600000
port=7100 program="$(realpath "$(dirname "$0")/../programs")/rs_kept.py"
loss="$(dirname "$0")/loss.sh"

has_said() { on 1 test -e "$tmp/$1"; }
carrier() { on 1 rsctl -j sockets | jq -e "any(.[]; .rx.carrier == \"$1\")" >/dev/null; }
rings() { on 1 rsctl -j links | jq -e "map(.rx_bytes // 0) | add $1" >/dev/null; }
# not by "rsctl -j memory", which does not show that of links that have ended
no_memory() { on 1 rsctl memory | grep -qE '^rings: 0( B)? of '; }
no_ring() { on 1 rsctl -j links | jq -e 'map(.rx_rings // 0) | (add // 0) == 0' >/dev/null; }
no_up_link() { [ "$(on 1 rsctl -j links | jq '[.[] | select(.state == "up")] | length')" = 0 ]; }

ok "VM 0 is drained: no link yet" rsctl drain on
on_bg 1 python3 "$program" serve $port "$tmp" >"$tmp/serve"
server=$!
ok "a server listens" wait_for 20 listens 1 $port
python3 "$program" talk "$ADDR4_1" $port "$tmp" &
client=$!
ok "the stream has begun" wait_for 20 has_said first
mark 0
ok "TCP of the sender is held back" on 1 nft "add table inet held;
	add chain inet held in { type filter hook input priority 0; };
	add chain inet held out { type filter hook output priority 0; };
	add rule inet held in tcp dport $port drop"
ok "a link comes up" rsctl drain off
granted() { [ "$(grown 0 grants-rx)" -ge 1 ]; }
ok "VM 0 gets a ring" wait_for 30 granted
touch "$tmp/go"
written() { [ "$(grown 0 ring-tx-bytes)" -ge 32768 ]; }
ok "VM 0 writes into its ring" wait_for 20 written
ok "what it wrote lands, although its SWITCH has not come" wait_for 20 rings ">= 32768"
ok "VM 1 still reads by TCP" carrier tcp
"$loss" drop
ok "the link dies" wait_for 60 no_up_link
ok "the memory of the ring is free" wait_for 60 no_memory
# An acknowledgement alone has no PSH.  It must pass: the SWITCH may be in the second segment.
ok "TCP of the sender goes on, the RESUME is held back" on 1 nft "
	add rule inet held out tcp sport $port tcp flags & psh == psh drop;
	flush chain inet held in"
ok "the program splices from the ring" wait_for 60 has_said spliced || in_all ss -tinop | diag
ok "the stream is still on the ring" carrier ring
on 1 nft delete table inet held
ok "the stream has left the ring" wait_for 60 carrier tcp
on 1 touch "$tmp/left"
wait $server
ok "every byte is right" test $? = 0
diag <"$tmp/serve"
touch "$tmp/end" "$tmp/closed"
wait $client
ok "the sender ends" test $? = 0
"$loss" pass

# ---- a program keeps a socket on which nothing comes any more ----

# The receiver has read everything from its ring when the sender does something.
keep() {	# WHAT THE-SENDER-DOES
	on 1 rm -f "$tmp/first" "$tmp/read" "$tmp/over"
	rm -f "$tmp/go" "$tmp/end" "$tmp/closed"
	port=$((port + 1))
	on_bg 1 python3 "$program" keep $port "$tmp" >"$tmp/keep"
	server=$!
	ok "$1: a server listens" wait_for 20 listens 1 $port
	python3 "$program" "$2" "$ADDR4_1" $port "$tmp" &
	client=$!
	ok "$1: the stream has begun" wait_for 20 has_said first
	ok "$1: it is on a ring" wait_for 60 carrier ring
	touch "$tmp/go"
	ok "$1: everything is read" wait_for 20 has_said read
	touch "$tmp/end"
}
taken_back() {	# WHAT
	ok "$1: there is a ring" eval '! no_ring'
	set_net ring_idle_ms=500
	ok "$1: the ring is not kept" wait_for 30 no_ring
	set_net ring_idle_ms=3600000
	ok "$1: the link is still up" eval '! no_up_link'
	ok "$1: the program still has the socket" on 1 pgrep -f "rs_kept.py keep"
	on 1 touch "$tmp/over"
	wait $server
	ok "$1: the program ends" test $? = 0
	touch "$tmp/closed"
	wait $client
	ok "$1: the sender ends" test $? = 0
}
set_net link_idle_ms=600000
keep "half-closed" half
taken_back "half-closed"
keep "closed" talk
touch "$tmp/closed"
taken_back "closed"
keep "reset" reset
touch "$tmp/closed"
taken_back "reset"

keep "reset, then the link dies" reset
touch "$tmp/closed"
wait $client
ok "the peer has reset it" test $? = 0
"$loss" drop
ok "that link dies, too" wait_for 60 no_up_link
ok "the memory of its ring is free, although the socket is not closed" wait_for 60 no_memory
ok "the program still has the socket" on 1 pgrep -f "rs_kept.py keep"
on 1 touch "$tmp/over"
wait $server
ok "the program ends" test $? = 0
"$loss" pass
ok "no socket remains" wait_for 30 no_sockets
ok "the module can be unloaded" wait_for 20 unload_module
done_testing
