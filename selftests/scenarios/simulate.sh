#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=1 kernels=6.12,6.1,debug timeout=400 seed=1
# Random programs on random hosts, in virtual time: what rs_simulate does is given by its
# seed.  Hosts are network namespaces h0, h1, ... with a device of rs_hca each, on a
# bridge in the namespace "wire", whose ports p0, p1, ... are their cables.  From the
# environment: SEED (1), STEPS (3000), HOSTS (4), PROFILE and DMA of the devices, TELL=yes
# (each step, in $RESULTS/told), PLAIN=yes (sockets of TCP's, for comparison), LIAR=yes (what the last host says is
# changed on its way, now and then), HCA, as hca.sh.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=selftests/scenarios/hca-lib.sh
. "$(dirname "$0")/hca-lib.sh"

: "${SEED:=1}" "${STEPS:=3000}" "${HOSTS:=4}"

all() { for ((host = 0; host < HOSTS; host++)); do "$@" || return; done; }
here() { nsenter --net="/run/netns/h$host" "$@"; }

add_host() {
	ip netns add h$host || return
	ip link add p$host netns wire type veth peer name eth0 netns h$host || return
	ip -n wire link set p$host master br0 up
	here sysctl -q -w net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0
	here ip -batch - <<-END
		link set lo up
		link set eth0 address 02:00:00:00:00:$(printf %02x $((host + 1))) up
		addr add 10.79.0.$((host + 1))/24 dev eth0
		addr add fd79::$(printf %x $((host + 1)))/64 dev eth0 nodad
	END
}
add_hosts() {
	ip netns add wire && ip -n wire link add br0 type bridge mcast_snooping 0 &&
		ip -n wire link set br0 up && all add_host
}
add_device() { here rdma link add hca$host type rs_hca netdev eth0; }
del_device() { ! here rdma link show hca$host/1 >/dev/null 2>&1 || here rdma link del hca$host; }
del_host() { ip netns del h$host; }
del_hosts() { all del_host && ip netns del wire; }
# The liar's device, and a byte of what it says by TCP: rs_simulate turns both on and off.
add_liar() {
	local last=$((HOSTS - 1)) at
	echo -n hca$last >$params/liar
	{
		echo "table netdev liar {"
		echo "chain lies {"
		for ((at = 0; at < 40; at++)); do
			echo "meta l4proto tcp numgen random mod 2000 $at @ih,$((8 * at)),8 set $((at * 37 % 256))"
		done
		echo "}"
		echo "chain says { type filter hook ingress device p$last priority 0; }"
		echo "}"
	} | nsenter --net=/run/netns/wire nft -f -
}
# What streams, links and TCP do; $RESULTS/trace if something is wrong.
trace=/sys/kernel/tracing
watch_ends() {
	mountpoint -q $trace || mount -t tracefs none $trace || return
	echo 8192 >$trace/buffer_size_kb && echo 1 >$trace/events/rdmastream/enable &&
		echo 1 >$trace/events/tcp/tcp_send_reset/enable &&
		echo 1 >$trace/events/sock/inet_sock_set_state/enable
}
ends() { sed -n 's/.* rstream_link_lost: .* why=//p' $trace/trace | sort | uniq -c | sort -rn; }
none_open() { ! here rsctl -j sockets | grep -q '"mode"'; }
# TCP may keep a closed socket for minutes; polling takes more time than waiting
patiently() {	# SECONDS CMD...
	local end=$((SECONDS + $1))
	until "${@:2}"; do
		[ $SECONDS -lt $end ] || return 1
		sleep 10
	done
}
sums() {
	all here rsctl -s -o stats |
		awk '{ n[$1] += $2 } END { for (name in n) printf "%s %.0f\n", name, n[name] }'
}
links_gone() {
	! here rsctl -j links | grep -q '"id"' && ! here rsctl -j memory | grep -q '"bytes"'
}
# What TCP has charged to sockets of all namespaces: its orphans, its sockets, and pages of memory.
charged() {
	awk '$1 == "TCP:" {
		for (i = 2; i < NF; i += 2) n[$i] = $(i + 1)
		printf "%d %d ", n["orphan"], n["alloc"] }' /proc/net/sockstat
	cat /sys/module/rs_charges/parameters/tcp_pages
}
charges_back() {	# CHARGED: before
	local now
	now=$(charged)
	echo "orphans, sockets and pages of TCP: before $1, now $now"
	[ "$now" = "$1" ]
}
# What all hosts have sent and received.  Bytes are missing only if a connection was aborted, and
# then no more than its programs have sent and not read; those sent again count twice.
bytes_agree() {
	awk -v unread="$(sed -n 's/.* bytes, \([0-9]*\) unread$/\1/p' "$RESULTS/told")" '
		{ n[$1] = $2 }
		END {
			tcp = n["tcp-tx-bytes"] - n["tcp-rx-bytes"]
			ring = n["ring-tx-bytes"] - n["resent-bytes"] - n["ring-rx-bytes"]
			printf "sent and not received: tcp %.0f of %.0f, ring %.0f of %.0f; %.0f unread\n",
				tcp, n["tcp-tx-bytes"], ring, n["ring-tx-bytes"], unread
			exit !(unread != "" && tcp >= 0 && ring >= 0 && tcp + ring <= unread)
		}' "$tmp/sums"
}
simulate() {
	rs_simulate ${LIAR:+-l} ${TELL:+-v} ${PLAIN:+-p} -s "$SEED" -n "$STEPS" -H "$HOSTS" >"$RESULTS/told" 2>&1 && return
	cat $trace/trace >"$RESULTS/trace"
	grep -m 5 "^wrong" "$RESULTS/told"
	tail -n 30 "$RESULTS/told"
	return 1
}

modprobe bridge
load_hca profile="${PROFILE:-plain}" dma="${DMA:-virt}" || bail "cannot load $HCA/rs_hca.ko"
ok "$HOSTS hosts" add_hosts || bail "no hosts"
ok "a device for each" all add_device || bail "no devices"
[ -z "${LIAR-}" ] || ok "the last host lies" add_liar || bail "no liar"
free=$(memory)
insmod "$HCA/rs_charges.ko" || bail "cannot load $HCA/rs_charges.ko"
charges=$(charged)
ok "the module loads" insmod "$MODULE"
ok "link ends are traced" watch_ends
# the links of a namespace other than the initial one go soon after its last socket
keepers=()
for ((host = 0; host < HOSTS; host++)); do
	nsenter --net="/run/netns/h$host" rs_stream -s -k inet -p 6999 -t 1000000 &
	keepers+=($!)
done
ok "seed $SEED: data and results are correct" simulate
diag "$(tail -n 2 "$RESULTS/told")"
# while the links are there
hosts=()
for ((host = 0; host < HOSTS; host++)); do hosts+=("h$host"); done
ok "all is given back: rings, cells, memory" rs_invariants -e "${hosts[@]}"
kill "${keepers[@]}"
wait "${keepers[@]}" 2>/dev/null
ok "no stream remains" patiently 900 all none_open ||
	{ all here rsctl -d sockets; all here ss -taneoim; } | diag
ok "no link and no registered memory remains" patiently 60 all links_gone ||
	{ all here rsctl links; all here rsctl memory; } | diag
ok "TCP has no more charges than before" patiently 300 charges_back "$charges"
diag "$(charges_back "$charges")"
# shellcheck disable=SC2154	# lib.sh has it
sums | sort >"$tmp/sums"
[ -n "${LIAR-}" ] || ok "the hosts have received what was sent" bytes_agree
diag "$(bytes_agree)"
diag "links: $(value links-up "$tmp/sums") made, $(value links-lost "$tmp/sums") lost; $(awk '/^switch:/ { n += $2 } END { print n + 0 }' "$tmp/sums") switches; $(value spans "$tmp/sums") spans"
diag "$(grep -v ' 0$' $params/counts)"
ends >"$tmp/ends"
diag "links ended: $(sed 's/^ *//' "$tmp/ends" | paste -sd, | sed 's/,/, /g')"
diag "reasons: $(grep ^reason: "$tmp/sums" | sed 's/^reason://' | paste -sd, | sed 's/,/, /g')"
# What no honest peer does, as the module has it.
against_rules() {
	sed -n '/rxring.c, txring.c/,$s/.*FAULT, [A-Z]*, \("[^"]*"\)).*/\1/p' "$(dirname "$0")/../../kmod/link/end.h" >"$tmp/rules"
	[ -s "$tmp/rules" ] || echo "kmod/link/end.h has no rules"
	grep -Ff "$tmp/rules" "$tmp/ends"
	grep -E '^reason:(bad-|ring-overrun|truncated).* [1-9]' "$tmp/sums"
}
[ -n "${LIAR-}" ] || ok "no link or stream ends because a peer breaks the protocol" test -z "$(against_rules)" ||
	cat $trace/trace >"$RESULTS/trace"
ok "the module can be unloaded" wait_for 60 rmmod rdmastream
ok "all memory is freed" wait_for 20 memory_is_back "$free"
diag "$(memory_is_back "$free")"
rmmod rs_charges
ok "the devices can be removed" all del_device
ok "the namespaces of the hosts can be removed" del_hosts
ok "no device remains" wait_for 20 no_devices
ok "rs_hca can be unloaded" wait_for 20 rmmod rs_hca
done_testing
