#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=2 kernels=6.12 timeout=300
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

# ---- a route of its own for marked packets, with a lightweight tunnel; nothing but the
# mark of one socket changes ----

rm -f "$tmp/enough"
marked() {	# sends until there is $tmp/enough or an error; has a mark from $tmp/mark on
	python3 - "$ADDR6_1" "$tmp" <<-'END'
		import errno, os, socket, subprocess, sys, time
		s = socket.socket(socket.AF_INET6, socket.SOCK_STREAM, 257)
		s.connect((sys.argv[1], 7300))
		while not os.path.exists(sys.argv[2] + "/enough"):
		    if os.path.exists(sys.argv[2] + "/mark"):
		        os.unlink(sys.argv[2] + "/mark")
		        s.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, 7)
		        stats = subprocess.check_output(["rsctl", "-s", "-o", "stats"], text=True)
		        with open(sys.argv[2] + "/marked", "w") as marked:
		            print(*(line.split()[1] for line in stats.splitlines()
		                    if line.startswith("ring-tx-bytes ")), file=marked)
		    try:
		        s.sendall(bytes(10000))
		    except OSError as e:
		        print(errno.errorcode[e.errno])
		        break
		    time.sleep(0.01)
	END
}
sink() {
	on_bg 1 "exec python3 -c '
import socket
s = socket.socket(socket.AF_INET6, socket.SOCK_STREAM, 257)
s.bind((\"::\", 7300))
s.listen()
c, _ = s.accept()
while c.recv(1 << 20):
    pass'" >/dev/null 2>&1
	sink=$!
	wait_for 20 listens 1 7300
}
mark_route() {
	local dev
	dev=$(ip -o -6 route get "$ADDR6_1" | sed 's/.* dev \([^ ]*\).*/\1/')
	modprobe -q seg6_iptunnel
	in_all "sysctl -q -w net.ipv6.conf.all.seg6_enabled=1
		for f in /proc/sys/net/ipv6/conf/*/seg6_enabled; do echo 1 >\$f; done"
	# through another address of VM 1
	on 1 ip -6 addr add fd99::2/128 dev lo nodad
	ip -6 route add fd99::2 via "$ADDR6_1" dev "$dev" &&
		ip -6 rule add fwmark 7 lookup 7 &&
		ip -6 route add "$ADDR6_1" table 7 encap seg6 mode inline segs fd99::2 dev "$dev" src "$ADDR6_0"
}
ok "mark: a route with a lightweight tunnel for the mark" mark_route
sink
ok "mark: a receiver starts" test $? = 0
had=$(ring_bytes 0)
marked >"$tmp/sent" &
client=$!
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

ok "the module can be unloaded" unload_module
done_testing
