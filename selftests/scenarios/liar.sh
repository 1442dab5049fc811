#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=2 kernels=6.12,6.1,debug timeout=900 rdma=siw
# A peer that violates the rules of rings and links, next to honest streams.  From the environment:
# ONLY (the cases whose names match).
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"

# ---- iWARP: a request is a TCP connection, and a listener has a port of the host ----

listens() { ss -Hltn "sport = :$1" | grep -q .; }	# PORT
listens_no_more() { ! listens "$1"; }	# PORT
not_for() {	# SECONDS CMD...
	local end=$((SECONDS + $1))
	while [ $SECONDS -le $end ]; do
		! "${@:2}" || return
		sleep 0.1
	done
}
# The one in guest 1 is that of another service.
other_port() {
	on 1 sysctl -qw net.rdmastream.cm_port=6380 && use ring && nft -f - <<-END
		add table inet ports
		add chain inet ports out { type filter hook output priority 0; }
		add rule inet ports out tcp dport 6380 counter
	END
}
no_request() { not_for 8 has_link 0 && nft list table inet ports | grep "counter packets 0 "; }
has_records() { rsctl -o sockets | grep framed; }
listens_elsewhere() {
	nsenter -t $elsewhere -U -n --preserve-credentials ss -Hltn "sport = :7777" | grep -q .
}

load || bail "cannot load the module"
# The peer breaks the link repeatedly and waits for the next one, so damping is off.
# The honest streams stay open, and always want rings.
set_net hello_timeout_ms=3000 link_flap_decay_ms=100 ring_idle_ms=900000
# with iWARP a program answers the probes of its link, but not while it looks at something else
[ "$RDMA" = rxe ] || set_net link_stall_ms=0
modprobe -a tun veth

# The peer uses the name of VM 1; honest streams run between the two VMs.
ok "a link comes up" want_link
hold=$tmp/go
begin_streams -C 3 -n 2M --hold-at 1M --hold "$hold" -t 900
ok "honest streams use the link" wait_for 30 all_on_rings 3
# over iWARP, by default, what depends on how messages are sent
[ "$RDMA" = rxe ] || [ $# != 0 ] || set -- 'iwarp_|refused|unproven|resume|revoke|done|freed_late'
[ -z "${ONLY-}" ] || set -- "$ONLY"
retell "peer" < <(rs_liar "$@" 2>&1)
in_all touch "$hold"
whole_streams "honest"
ok "a link comes up again" want_link
ok "no socket remains" wait_for 20 no_sockets
rsctl stats
ok "the module can be unloaded" wait_for 20 unload_module
if [ "$RDMA" = siw ]; then
	load || bail "cannot load the module again"
	set_net link_idle_ms=1000
	hold=$tmp/go2
	ok "guest 1 uses another port" other_port
	begin_streams -n 2 --hold-at 1 --hold "$hold" -t 100
	ok "streams have records" wait_for 20 has_records
	ok "with ports that differ, no link is tried" no_request
	in_all touch "$hold"
	whole_streams "without a link"
	ok "no socket remains" wait_for 20 no_sockets
	ok "guest 1 listens no more" wait_for 60 on 1 sh -c '! ss -Hltn "sport = :6380" | grep .'
	on 1 sysctl -qw net.rdmastream.cm_port=4793
	ok "with the same port, there is a link" want_link
	ok "the host listens no more" wait_for 60 listens_no_more 4793
	# what comes and goes before the worker has run must not put off what stays
	set_net link_idle_ms=60000
	ok "sockets come and go" python3 -c 'import socket
for _ in range(3):
    with socket.socket(proto=257) as sock:
        sock.listen()'
	rs_stream -s -k inet -p 7778 -t 900 >/dev/null 2>&1 &
	stays=$!
	ok "for one that stays, the host listens" wait_for 10 listens 4793
	set_net link_idle_ms=1000
	kill -KILL $stays
	ok "the host listens no more then" wait_for 60 listens_no_more 4793
	# the root of another user namespace, in a network namespace of its own
	unshare -Urn rs_stream -s -k inet -p 7777 -t 900 >/dev/null 2>&1 &
	elsewhere=$!
	ok "another namespace listens" wait_for 20 listens_elsewhere
	ok "it takes no port of the host" not_for 2 listens 4793
	ok "it cannot choose the port" \
		unshare -Urn sh -c "cd /proc/sys/net/rdmastream && cat cm_port && ! echo 443 >cm_port"
	kill -KILL $elsewhere
	ok "the module can be unloaded again" wait_for 20 unload_module
fi
done_testing
