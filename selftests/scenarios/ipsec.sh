#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=2 stock=6.12 timeout=300
# What IPsec or a tunnel protects does not leave the host by RDMA: neither when it is
# protected from the start, nor when a policy or a route comes while rings are in use.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"

load || bail "cannot load the module"
in_all modprobe -a xfrm_user esp4 ||
	bail "no IPsec in this kernel"
use ring

# TCP both ways between the two, in transport mode; RDMA's UDP is not meant.
keys=(enc cipher_null '' auth-trunc 'hmac(sha256)' "0x$(printf '%064d' 7)" 128)
add_state() {	# VM FROM TO
	on "$1" /sbin/ip xfrm state add src "$2" dst "$3" proto esp spi 0x100 mode transport "${keys[@]}"
}
add_policy() {	# VM FROM TO
	on "$1" /sbin/ip xfrm policy add dir out src "$2" dst "$3" proto tcp \
		tmpl src "$2" dst "$3" proto esp mode transport
}
protect() {
	local vm
	for vm in 0 1; do
		add_state $vm "$ADDR4_0" "$ADDR4_1" && add_state $vm "$ADDR4_1" "$ADDR4_0" || return
	done
	add_policy 0 "$ADDR4_0" "$ADDR4_1" && add_policy 1 "$ADDR4_1" "$ADDR4_0"
}
unprotect() { in_all "ip xfrm policy flush; ip xfrm state flush"; }
esp_packets() { on 0 /sbin/ip -s xfrm state list src "$ADDR4_0" | awk '/bytes.*packets/ { n += $2 } END { print n + 0 }'; }
some_esp() { [ "$(esp_packets)" -gt 0 ]; }

# ---- from the start ----

ok "policies for TCP" protect
mark 0
mark 1
ok "from the start: a stream" stream inet inet -n 1M
ok "from the start: it was protected" some_esp
ok "from the start: nothing went by RDMA" test "$(grown 0 ring-tx-bytes)" = 0
ok "from the start: it is plain TCP" test "$(grown 0 raw)" -gt 0
ok "from the start: for this reason" test "$(grown 0 reason:ipsec)" -gt 0
ok "policies are gone" unprotect

# ---- while rings are in use ----

ring_bytes() { counter "$1" ring-tx-bytes; }
moves() { [ "$(ring_bytes 0)" -gt "$had" ]; }
on_tcp() { on "$1" rsctl -j sockets | jq -e 'all(.[]; (.tx.ring_size // 0) == 0)' >/dev/null; }

had=$(ring_bytes 0)
begin_streams -n 1M --until "$tmp/enough" --pace 20 -t 250
ok "later: a stream is on rings" wait_for 60 moves
mark 0
ok "later: policies come" protect
for vm in 0 1; do
	ok "later: VM $vm sends on no ring any more" wait_for 30 on_tcp $vm
done
had=$(ring_bytes 0)
ok "later: it goes on" wait_for 30 some_esp
ok "later: by TCP" test "$(ring_bytes 0)" = "$had"
ok "later: for this reason" test "$(grown 0 reason:ipsec)" -gt 0
ok "later: policies are gone" unprotect
in_all touch "$tmp/enough"
whole_streams later

mark 0
ok "without policies: a stream" stream inet inet -n 1M
ok "without policies: on rings again" test "$(grown 0 ring-tx-bytes)" -gt 0

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
ok "tunnel: VM 0 has one" tunnel 0 "$ADDR4_0" "$ADDR4_1"
ok "tunnel: VM 1 has one" tunnel 1 "$ADDR4_1" "$ADDR4_0"
had=$(ring_bytes 0)
begin_streams -n 1M --until "$tmp/enough" --pace 20 -t 250
ok "tunnel: a stream is on rings" wait_for 60 moves
ok "tunnel: VM 0 routes into it" into 0 "$ADDR4_0" "$ADDR4_1"
ok "tunnel: VM 1 routes into it" into 1 "$ADDR4_1" "$ADDR4_0"
for vm in 0 1; do
	ok "tunnel: VM $vm sends on no ring any more" wait_for 30 on_tcp $vm
done
in_all touch "$tmp/enough"
whole_streams tunnel
mark 0
ok "tunnel: a new stream" stream inet inet -n 1M
ok "tunnel: it went there" test "$(tunnel_bytes)" -gt 1000000
ok "tunnel: nothing of it by RDMA" test "$(grown 0 ring-tx-bytes)" = 0
ok "tunnel: for this reason" test "$(grown 0 reason:ipsec)" -gt 0
ok "the module can be unloaded" unload_module
done_testing
