#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=3 kernels=6.12,6.1,debug timeout=400
# A third host impersonates two others, claims their addresses, and forwards their messages.
# Both refuse it.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"

load || bail "cannot load the module"
# M establishes one link before it answers the other host, which must wait that long.
set_net link_flap_decay_ms=100 ring_idle_ms=900000 cm_timeout_ms=20000

ok "a link comes up" want_link
mark 0
hold=$tmp/go port=6999
begin_streams -C 3 -n 2M --hold-at 1M --hold "$hold" -t 900
ok "streams use the link" wait_for 30 all_on_rings 3
honest() { in_all rsctl -j links | jq -c '.[] | select(.state == "up") | [.id, .qpn, .tx_rings, .rx_rings]' | sort; }
# all have been read, and each direction has the ring that it keeps
at_rest() {
	touch "$tmp/before"
	mv "$tmp/before" "$tmp/was"
	honest >"$tmp/before"
	test -e "$hold.held" && on 1 test -e "$hold.held" && cmp -s "$tmp/before" "$tmp/was" &&
		jq -es 'length == 2 and all(.[]; .[2] == 3 and .[3] == 3)' <"$tmp/before" >/dev/null
}
ok "streams: all is read, and their rings are idle" wait_for 30 at_rest

# Servers to which it connects: rdmastream listeners that read until the end.
accepts="import socket, sys; s = socket.socket(proto=257); s.bind(('', $port)); s.listen()
kept = [s.accept() for _ in range(100)]"
listeners=()
for vm in 0 1; do
	on $vm ip route replace 10.78.0.0/24 via "$ADDR4_2"
	on_bg $vm python3 -c "$accepts" >"$tmp/listener$vm" 2>&1
	listeners+=($!)
	ok "VM $vm listens" wait_for 20 listens $vm $port
done
on 2 "modprobe -qa tun veth; sysctl -q -w net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0"
for vm in 0 1; do mark $vm; done
retell "impostor" < <(on 2 rs_impostor "$ADDR4_0" "$ADDR4_1" "$ADDR4_2" $port 2>&1)
kill "${listeners[@]}" 2>/dev/null
for vm in 0 1; do
	ok "VM $vm has refused a grant" test "$(grown $vm grants-refused-rx)" -ge 1
	ok "VM $vm: because the link is unknown" test "$(grown $vm reason:link-lost)" -ge 1
done
same() { [ "$(honest)" = "$(<"$tmp/before")" ]; }
unproven() { echo $(($(grown 0 reason:link-unauthenticated) + $(grown 1 reason:link-unauthenticated))); }
ok "answers without proof are recognised" test "$(unproven)" -ge 3
ok "links and rings of the two hosts are unchanged" wait_for 30 same ||
	{ echo "before:"; cat "$tmp/before"; echo "now:"; in_all rsctl -j links; in_all rsctl -d sockets; } | diag
in_all touch "$hold"
whole_streams "streams"
ok "no socket remains" wait_for 60 no_sockets
ok "the module can be unloaded" wait_for 20 unload_module
done_testing
