#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=2 kernels=6.12 timeout=400
# Connections that IPsec or a tunnel protects do not use RDMA, whether they are protected from
# the start or a policy or route is added while rings are in use.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"

load || bail "cannot load the module"
in_all modprobe -a xfrm_user ah4 ||
	bail "no IPsec in this kernel"
use ring

# TCP in both directions between the two, in transport mode; the policy does not match RoCE.
keys=(auth-trunc 'hmac(sha256)' "0x$(printf '%064d' 7)" 128)
add_state() {	# VM FROM TO
	on "$1" /sbin/ip xfrm state add src "$2" dst "$3" proto ah spi 0x100 mode transport "${keys[@]}"
}
add_policy() {	# VM FROM TO
	on "$1" /sbin/ip xfrm policy add dir out src "$2" dst "$3" proto tcp \
		tmpl src "$2" dst "$3" proto ah mode transport
}
protect() {
	local vm
	for vm in 0 1; do
		add_state $vm "$ADDR4_0" "$ADDR4_1" && add_state $vm "$ADDR4_1" "$ADDR4_0" || return
	done
	add_policy 0 "$ADDR4_0" "$ADDR4_1" && add_policy 1 "$ADDR4_1" "$ADDR4_0"
}
unprotect() { in_all "ip xfrm policy flush; ip xfrm state flush"; }
ipsec_packets() { on 0 /sbin/ip -s xfrm state list src "$ADDR4_0" | awk '/bytes.*packets/ { n += $2 } END { print n + 0 }'; }
some_ipsec() { [ "$(ipsec_packets)" -gt 0 ]; }

# ---- from the start ----

ok "IPsec policies for TCP" protect
mark 0
mark 1
ok "from the start: a stream works" stream inet inet -n 1M
ok "from the start: IPsec protected it" some_ipsec
ok "from the start: nothing used RDMA" test "$(grown 0 ring-tx-bytes)" = 0
ok "from the start: it is plain TCP" test "$(grown 0 fallbacks)" -gt 0
ok "from the start: the reason is ipsec" test "$(grown 0 reason:ipsec)" -gt 0
ok "policies can be removed" unprotect

# ---- while rings are in use ----

ring_bytes() { counter "$1" ring-tx-bytes; }
moves() { [ "$(ring_bytes 0)" -gt "$had" ]; }
on_tcp() { on "$1" rsctl -j sockets | jq -e 'all(.[]; (.tx.ring_size // 0) == 0)' >/dev/null; }

had=$(ring_bytes 0)
begin_streams -n 1M --until "$tmp/enough" --pace 20 -t 250
ok "later: a stream uses rings" wait_for 60 moves
mark 0
ok "later: add policies" protect
for vm in 0 1; do
	ok "later: VM $vm no longer sends on rings" wait_for 30 on_tcp $vm
done
had=$(ring_bytes 0)
ok "later: the stream continues" wait_for 30 some_ipsec
ok "later: over TCP" test "$(ring_bytes 0)" = "$had"
ok "later: the reason is ipsec" test "$(grown 0 reason:ipsec)" -gt 0
ok "later: policies can be removed" unprotect
in_all touch "$tmp/enough"
whole_streams later

# ---- a policy that blocks ----

rm -f "$tmp/enough"
in_all rm -f "$tmp/enough"
block() { ip xfrm policy add dir out src "$ADDR4_0" dst "$ADDR4_1" proto tcp action block; }
had=$(ring_bytes 0)
begin_streams -n 1M --until "$tmp/enough" --pace 20 -t 250
ok "block: without policies a stream uses rings again" wait_for 60 moves
ok "block: add a policy" block
ok "block: VM 0 no longer sends on rings" wait_for 30 on_tcp 0
ip xfrm policy flush
in_all touch "$tmp/enough"
whole_streams block

# ---- a policy for incoming packets alone: those of TCP are dropped ----

rm -f "$tmp/enough"
in_all rm -f "$tmp/enough"
incoming() {
	ip xfrm policy add dir in src "$ADDR4_1" dst "$ADDR4_0" proto tcp \
		tmpl src "$ADDR4_1" dst "$ADDR4_0" proto ah mode transport
}
counted() { [ "$(grown "$1" "$2")" -gt 0 ]; }	# VM NAME
had=$(ring_bytes 0)
begin_streams -n 1M --until "$tmp/enough" --pace 20 -t 250
ok "incoming: a stream uses rings" wait_for 60 moves
mark 0
ok "incoming: add a policy" incoming
ok "incoming: the link is gone" wait_for 30 no_link 0
mark 0
ip xfrm policy flush
ok "incoming: without it, streams return to rings" wait_for 60 counted 0 ring-rx-bytes
in_all touch "$tmp/enough"
whole_streams incoming

# ---- a route into a tunnel, which may encrypt; addresses are the same ----

outer=198.51.100
tunnel() {	# VM OWN OTHER
	on "$1" "modprobe ip_gre; ip addr add $outer.$((1 + $1))/24 dev \$(ip -o route get $3 | sed 's/.* dev \([^ ]*\).*/\1/') &&
		ip link add tunnel type gre local $outer.$((1 + $1)) remote $outer.$((2 - $1)) &&
		ip link set tunnel up"
}
into() { on "$1" "ip route add $3/32 dev tunnel src $2"; }	# VM OWN OTHER
tunnel_bytes() { on 0 cat /sys/class/net/tunnel/statistics/tx_bytes; }
rm -f "$tmp/enough"
in_all rm -f "$tmp/enough"
ok "tunnel: VM 0 creates a tunnel" tunnel 0 "$ADDR4_0" "$ADDR4_1"
ok "tunnel: VM 1 creates a tunnel" tunnel 1 "$ADDR4_1" "$ADDR4_0"
had=$(ring_bytes 0)
begin_streams -n 1M --until "$tmp/enough" --pace 20 -t 250
ok "tunnel: a stream uses rings" wait_for 60 moves
ok "tunnel: VM 0 routes into it" into 0 "$ADDR4_0" "$ADDR4_1"
ok "tunnel: VM 1 routes into it" into 1 "$ADDR4_1" "$ADDR4_0"
for vm in 0 1; do
	ok "tunnel: VM $vm no longer sends on rings" wait_for 30 on_tcp $vm
done
in_all touch "$tmp/enough"
whole_streams tunnel
mark 0
ok "tunnel: a new stream works" stream inet inet -n 1M
ok "tunnel: it used the tunnel" test "$(tunnel_bytes)" -gt 1000000
ok "tunnel: nothing used RDMA" test "$(grown 0 ring-tx-bytes)" = 0
ok "tunnel: the reason is ipsec" test "$(grown 0 reason:ipsec)" -gt 0
ok "tunnel: it can be removed" in_all ip link del tunnel

# ---- a route of its own for marked packets, with a lightweight tunnel; nothing but the
# mark of one socket changes ----

programs=$(realpath "$(dirname "$0")/../programs")
sends() {	# ADDRESS OPTION
	rm -f "$tmp"/{enough,marked,sent}
	timeout 120 python3 "$programs/rs_option.py" send "$1" 7300 "$2" "$tmp" >"$tmp/sent" &
	client=$!
}
receives() {	# OPTION
	on 1 "rm -f $tmp/enough $tmp/marked $tmp/got"
	on_bg 1 "exec timeout 120 python3 $programs/rs_option.py receive :: 7300 $1 $tmp >$tmp/got"
	sink=$!
	wait_for 20 listens 1 7300
}
mark_route() {	# VM: over the other VM's second address
	local own=ADDR6_$1 other=ADDR6_$((1 - $1)) second=fd99::$((1 + $1))
	in_all "modprobe -q seg6_iptunnel
		sysctl -q -w net.ipv6.conf.all.seg6_enabled=1
		for f in /proc/sys/net/ipv6/conf/*/seg6_enabled; do echo 1 >\$f; done"
	on $((1 - $1)) ip -6 addr add $second/128 dev lo nodad
	on "$1" "dev=\$(ip -o -6 route get ${!other} | sed 's/.* dev \([^ ]*\).*/\1/')
		ip -6 route add $second via ${!other} dev \$dev &&
		ip -6 rule add fwmark 7 lookup 7 &&
		ip -6 route add ${!other} table 7 encap seg6 mode inline segs $second dev \$dev src ${!own}"
}
ok "mark: a route with a lightweight tunnel for the mark" mark_route 0
receives mark
ok "mark: a receiver starts" test $? = 0
had=$(ring_bytes 0)
sends "$ADDR6_1" mark
ok "mark: a stream uses rings" wait_for 60 moves
mark 0
touch "$tmp/mark"
ok "mark: set SO_MARK" wait_for 20 test -s "$tmp/marked"
ok "mark: the stream is reset" wait_for 20 test -s "$tmp/sent"
wait $client
ok "mark: the error is ENETUNREACH" test "$(<"$tmp/sent")" = ENETUNREACH
ok "mark: the reason is ipsec" test "$(grown 0 reason:ipsec)" -gt 0
ok "mark: no more of its data used a ring" test "$(ring_bytes 0)" = "$(<"$tmp/marked")"
ok "mark: the link stays up for others" test "$(grown 0 links-lost)" = 0
wait $sink
ip -6 rule del fwmark 7

# ---- a policy of the socket itself; another stream stays on the link ----

on_ring() {	# the stream to port 7300
	rsctl -j sockets | jq -e 'any(.[]; (.remote // "" | endswith(":7300")) and .tx.carrier == "ring")'
}
sent() { [ "$(<"$tmp/sent")" = "$1" ]; }
got() { [ "$(on 1 cat "$tmp/got")" = "$1" ]; }
begin_streams -n 1M --until "$tmp/all" --pace 20 -t 500
others=("$client" "$server")
for family in 4 6; do
	to=ADDR${family}_1
	receives policy
	sends "${!to}" policy
	ok "own policy: IPv$family, a stream uses a ring" wait_for 60 on_ring
	mark 0
	touch "$tmp/mark"
	ok "own policy: IPv$family, it is reset with ENETUNREACH" wait_for 20 sent ENETUNREACH
	ok "own policy: IPv$family, the reason is ipsec" test "$(grown 0 reason:ipsec)" -gt 0
	ok "own policy: IPv$family, the peer sees a reset" wait_for 20 got ECONNRESET
	had=$(ring_bytes 0)
	ok "own policy: IPv$family, others stay on their rings" wait_for 20 moves
	ok "own policy: IPv$family, the link was not lost" test "$(grown 0 links-lost)" = 0
	wait $client $sink
done

receives policy
sends "$ADDR4_1" policy
ok "own policy: a stream to one that only receives uses a ring" wait_for 60 on_ring
mark 1
on 1 touch "$tmp/mark"
ok "own policy: that is reset with ENETUNREACH" wait_for 20 got ENETUNREACH
ok "own policy: there the reason is ipsec" test "$(grown 1 reason:ipsec)" -gt 0
ok "own policy: there the link was not lost" test "$(grown 1 links-lost)" = 0
ok "own policy: its peer sees a reset" wait_for 20 sent ECONNRESET
wait $client $sink

# If routes change where there is a tunnel, the link looks at streams that only receive.  It must
# not mistake the program's option for the change.
on 1 "ip tuntap add dev ours mode tun && ip link set ours up"
ok "own mark: a route for the mark" mark_route 1
probe_ms=$(on 1 sysctl -n net.rdmastream.link_probe_ms)
on 1 sysctl -q -w net.rdmastream.link_probe_ms=3000
receives mark
sends "$ADDR6_1" mark
ok "own mark: a stream to one that only receives uses a ring" wait_for 60 on_ring
mark 1
on 1 "ip -6 route add fd98::/64 dev lo && touch $tmp/mark"
ok "own mark: while routes change, that is reset with ENETUNREACH" wait_for 20 got ENETUNREACH
ok "own mark: there the link was not lost" test "$(grown 1 links-lost)" = 0
ok "own mark: its peer sees a reset" wait_for 20 sent ECONNRESET
on 1 "sysctl -q -w net.rdmastream.link_probe_ms=$probe_ms; ip -6 rule del fwmark 7; ip link del ours"
wait $client $sink

mark 0
touch "$tmp/mark"
receives policy
sends "$ADDR4_1" policy
is_ipsec() { [ "$(grown 0 reason:ipsec)" -gt 0 ]; }
plain_tcp() { ss -Htn dst "$ADDR4_1" dport = 7300 | awk '{ exit !($1 == "ESTAB") }'; }
ok "own policy: set before, the stream begins" wait_for 20 plain_tcp
ok "own policy: set before, the reason is ipsec" wait_for 20 is_ipsec
touch "$tmp/enough"
ok "own policy: set before, the stream ends normally" wait_for 20 sent end
ok "own policy: set before, it arrives" wait_for 20 got end
wait $client $sink
client=${others[0]} server=${others[1]}
in_all touch "$tmp/all"
whole_streams "own policy"

# ---- a route to a program, which may encrypt ----

ended_by_ipsec() {	# the latest link
	rsctl -j peers | jq -e 'any(.[]; .end_text == "IPsec protects one of its connections")'
}
for kind in tun tap; do
	# so that the latest link has not ended for that reason
	rsctl drain on >/dev/null
	ok "$kind: no link" wait_for 30 no_link 0
	hurry
	begin_streams -n 1M --until "$tmp/$kind" --pace 20 -t 250
	had=$(ring_bytes 0)
	ok "$kind: a stream uses rings" wait_for 60 moves
	ok "$kind: IPsec has not ended a link" eval '! ended_by_ipsec'
	ip tuntap add dev ours mode $kind && ip link set ours up
	ok "$kind: a route to it" ip route add "$ADDR4_1/32" dev ours src "$ADDR4_0"
	ok "$kind: the stream no longer sends on a ring" wait_for 30 on_tcp 0
	ok "$kind: because the link has ended for that reason" ended_by_ipsec
	ip link del ours
	in_all touch "$tmp/$kind"
	whole_streams $kind
done

ok "the module can be unloaded" unload_module
done_testing
