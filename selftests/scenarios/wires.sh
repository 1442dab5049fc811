#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=1 asked=6.12,6.1 timeout=600 seed=1
# Over a wire that loses packets, and over a slow one, a connection without RDMA is as fast as
# TCP, and so is one whose RDMA has gone.  Time is virtual: computing takes none, so that only the
# wire counts.  Hosts are network namespaces h0 and h1; a bridge in "wire" is between them.
# From the environment: TIMES (5), HCA, as hca.sh.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=selftests/scenarios/hca-lib.sh
. "$(dirname "$0")/hca-lib.sh"

: "${TIMES:=5}"
bytes=$((2 << 20))

# Packets are as the wire has them: what loses one must not see 64 KiB of them as one.
add_host() {	# N
	ip netns add "h$1" && ip link add "p$1" netns wire type veth peer name eth0 netns "h$1" &&
		ip -n wire link set "p$1" master br0 up &&
		host "$1" ethtool -K eth0 tso off gso off gro off >/dev/null &&
		host "$1" ip -batch - <<-END
			link set lo up
			link set eth0 up
			addr add 10.81.0.$(($1 + 1))/24 dev eth0
		END
}
add_hosts() {
	ip netns add wire && ip -n wire link add br0 type bridge mcast_snooping 0 &&
		ip -n wire link set br0 up && add_host 0 && add_host 1
}
del_hosts() { ip netns del h0 && ip netns del h1 && ip netns del wire; }

# One of LOSS full packets of TCP is lost, in each direction, but none by chance: the same transfer
# would take twice as long now and then.  A connection whose SYN-ACK is lost would be plain TCP.
wire() {	# LOSS QDISC...
	local i
	for i in 0 1; do
		ip netns exec wire tc qdisc replace dev p$i root "${@:2}" || return
		[ "$1" != 0 ] || continue
		ip netns exec wire nft -f - <<-END || return
			table netdev loss$i {
				chain loss {
					type filter hook ingress device p$i priority 0;
					ip protocol tcp ip length gt 1000 numgen inc mod $1 50 counter drop
				}
			}
		END
	done
}

# What has been lost in both directions.
lost() {
	ip netns exec wire nft -j list ruleset | jq '[.. | .counter? | objects | .packets] | add // 0'
}

# How the connection is made, which settings it needs, and what shows that it was so.
declare -A kind=([tcp]=tcp4 [again]=tcp4 [spans]=inet [gone]=inet)
prepare() {	# HOW
	case $1 in
	spans)	both sysctl -q -w net.rdmastream.ring_mode=0 ;;
	gone)
		both sysctl -q -w net.rdmastream.ring_mode=2 && both rsctl drain off >/dev/null &&
			make_link ;;
	esac
}
# Another connection asks for it: one that has nothing to send once it has left its records for
# want of a link does not return.
make_link() {
	local status=0 link=$tmp/link
	rm -f "$link"
	begin_pair 10.81.0.2 -k inet -p 6999 -t 60 -n 64K --until "$link" --pace 20
	wait_for 40 both_links || status=1
	: >"$link"
	end_pair && return $status
}
up() { host "$1" rsctl -j links | grep -q '"state":"up"'; }	# HOST
both_links() { up 0 && up 1; }
by_ring() {	# HOST tx|rx
	host "$1" rsctl -j sockets | jq -e "any(.[]; .$2.carrier == \"ring\")" >/dev/null
}
on_rings() { by_ring 0 tx && by_ring 1 rx; }
spans() { host 0 rsctl -s -o stats | value spans; }

# The time from the moment at which a connection has nothing else to do until all has come.
port=7000
transfer() {	# HOW BACK
	local before status=0 start go=$tmp/go
	port=$((port + 1))
	rm -f "$go" "$go.held"
	before=$(spans)
	begin_pair 10.81.0.2 -k "${kind[$1]}" -p $port -t 300 -n $bytes -m "$2" \
		--hold-at 64K --hold "$go"
	wait_for 40 test -e "$go.held" || status=1
	if [ "$1" = gone ]; then
		wait_for 40 on_rings || { echo "no rings"; status=1; }
		before=$(spans)
		both rsctl drain on >/dev/null || status=1
	fi
	start=$(date +%s%N)
	: >"$go"
	end_pair || status=1
	echo $((($(date +%s%N) - start) / 1000)) >>"$tmp/$1"
	[ "${kind[$1]}" != inet ] || [ "$(spans)" -gt "${before:-0}" ] || { echo "no spans"; status=1; }
	return $status
}

# All in turn, so that what is learnt meanwhile counts for each of them.
measure() {	# BACK
	local n how
	rm -f "$tmp"/{tcp,again,spans,gone}
	for ((n = 0; n < TIMES; n++)); do
		for how in tcp again spans gone; do
			prepare $how && transfer $how "$1" || return
			both ip tcp_metrics flush
		done
	done
}
mean() { awk '{ sum += $1 } END { printf "%d\n", sum / NR }' "${@/#/$tmp/}"; }	# HOW...
# Where ACKs wait behind data, or packets are lost, the same run again takes 10% more or less.
near() {	# HOW
	local ours tcp
	ours=$(mean "$1") tcp=$(mean tcp again)
	echo "on average $ours us, TCP $tcp us"
	((ours * 100 <= tcp * 115))
}
report() {
	for how in tcp again spans gone; do
		echo "# $how, us: $(sort -n "$tmp/$how" | tr '\n' ' ')"
	done
}

compare() {	# NAME LOSS QDISC...
	local back before
	ok "$1: the wire" wire "${@:2}"
	before=$(lost)
	for back in 0 $bytes; do
		ok "$1: transfers, $back bytes back" measure $back
		report
		ok "$1, $back bytes back: without RDMA as fast as TCP" near spans
		ok "$1, $back bytes back: RDMA has gone, as fast as TCP" near gone
	done
	[ "$2" = 0 ] || ok "$1: packets were lost" test "$(lost)" -gt $((before + TIMES * 100))
}

[ "$VM_ROOT" = hostfs ] && grep -q time-travel /proc/cmdline || bail "not in virtual time"
load_module && load_hca profile=plain dma=virt || bail "cannot load the modules"
ok "two hosts" add_hosts
for i in 0 1; do ok "a device of host $i" host $i rdma link add hca$i type rs_hca netdev eth0; done
compare slow 0 tbf rate 20mbit burst 32k latency 50ms
compare lossy 101 netem delay 1ms rate 100mbit limit 1000
for i in 0 1; do ok "the device of host $i goes" host $i rdma link del hca$i; done
ok "no socket remains" wait_for 20 no_sockets
ok "the hosts can be removed" del_hosts
ok "the module can be unloaded" wait_for 20 unload_module
ok "so can the devices' module" wait_for 20 rmmod rs_hca
done_testing
