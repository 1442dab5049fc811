#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The guest's part of "scripts/bench instr": every way of carrying a stream within the
# VM, between two sockets at its own address; and RDMA writes without a stream, from
# the device to itself.  scripts/bench instr calls it.
#
# From the environment: MODULE, FLOOR (rs_floor.ko), TOOLS (rsctl), BIN (rs_bench,
# smc_setup).  Writes
# $RESULTS/counts:
#	setting TEXT		what matters
#	count PATH NAME VALUE
#	proof PATH TEXT
#	missing PATH TEXT	why it could not be counted
# Time leaps whenever the VM idles, so nothing here has a time limit.
# shellcheck source=selftests/bench/lib.sh
. "$(dirname "$0")/lib.sh"

counts=${RESULTS:?}/counts
# What is counted reads no file of the host.
cp "$BIN/rs_bench" "$BIN/smc_setup" "$TOOLS/rsctl" "$FLOOR" "$tmp"
BIN=$tmp TOOLS=$tmp FLOOR=$tmp/${FLOOR##*/}

tell() { echo "$*" >>"$counts"; }

# client and server
declare -A client=([tcp]=tcp [to-tcp]=ours [from-tcp]=tcp [raw]=ours [ours-tcp]=ours
	[ours-ring]=ours [tcp-again]=tcp [smc]=smc)
declare -A server=([tcp]=tcp [to-tcp]=tcp [from-tcp]=ours [raw]=ours [ours-tcp]=ours
	[ours-ring]=ours [tcp-again]=tcp [smc]=smc)

set_net() {	# NAME=VALUE...
	sysctl -q -w "${@/#/net.rdmastream.}"
}

# SMC-R takes the RDMA device of the network that the connection uses, and without
# version 1 does not learn the peer's MAC address, by which soft-RoCE tells packets
# to itself.  On "lo" that address is 0, as SMC assumes.
prepare_smc() {
	address=10.77.1.1
	ip link set lo mtu "$(cat /sys/class/net/eth0/mtu)"
	ip addr add $address/24 dev lo
	rdma link add rxe1 type rxe netdev lo
	modprobe smc
	"$BIN/smc_setup" add lo rxe1
}

prepare() {	# PATH
	case $1 in
	raw)	set_net negotiate=0 ;;
	ours-tcp)
		set_net negotiate=1 upgrade=0 upgrade_self=1 ;;
	ours-ring)	set_net negotiate=1 upgrade=2 upgrade_self=1 ;;
	smc)	prepare_smc ;;
	*)	set_net negotiate=1 ;;
	esac
}

counters() {	# PATH
	case $1 in
	smc)	"$BIN/smc_setup" stats ;;
	*)	our_counters 0 ;;
	esac
}

# Both ends are counted here.
carried_within() {
	local all=$(($(value sent "$tmp/out") + $(value received "$tmp/out")))
	carried "$@" $all $all
}

# What shows that PATH was taken.  Fails if it was not.
proof() {
	case $1 in
	tcp*)		echo "plain socket(AF_INET, SOCK_STREAM, 0)" ;;
	to-tcp|raw)	became raw ;;
	from-tcp)	became plain-accepts ;;
	ours-tcp)	carried_within tcp- 99 && (($(grown ring-tx-bytes) == 0)) ;;
	ours-ring)		carried_within ring- 90 ;;	# what comes first is on TCP
	smc)		carried_within "" 99 ;;
	esac
}

count() {	# PATH
	local path=$1 shown pid status port=$((7300 + ${#seen})) load
	seen+=.
	# As SCHED_BATCH whoever wakes the other goes on until it has to wait: how often
	# they take turns would otherwise depend on next to nothing.
	load=(chrt -b 0 "$BIN/rs_bench" -p "$port")
	prepare "$path" >"$tmp/err" 2>&1 || return
	"${load[@]}" -s -k "${server[$path]}" 2>"$tmp/err" &
	pid=$!
	until listens 0 $port; do
		kill -0 $pid 2>/dev/null || return
		sleep 0.1
	done
	counters "$path" >"$tmp/before"
	"${load[@]}" -i -k "${client[$path]}" -c "$address" >"$tmp/out" 2>>"$tmp/err"
	status=$?
	counters "$path" >"$tmp/after"
	kill $pid
	wait $pid 2>/dev/null
	[ $status = 0 ] || return
	if ! shown=$(proof "$path"); then
		echo "this is not what carried the bytes: $shown" >"$tmp/err"
		return 1
	fi
	tell "proof $path $shown"
	sed "/^sent\|^received/d; s/^/count $path /" "$tmp/out" >>"$counts"
}

# count_floor NAME OP SIZE N VALUE: in the mode that takes least.  No polling all the
# time, which counts what there is.
count_floor() {
	local mode n best='' best_mode=''
	for mode in softirq workqueue; do
		floor_once addr="$ADDR4_0" self=1 op="$2" size="$3" count="$4" mode=$mode \
			>"$tmp/out" 2>"$tmp/err" || return
		n=$(value "$5" "$tmp/out")
		if [ -z "$best" ] || ((n < best)); then
			best=$n best_mode=$mode
		fi
	done
	tell "count floor $1 $best"
	floor_modes+=" $1 $best_mode,"
}

floor() {
	local floor_modes='' before
	before=$(packets_sent)
	count_floor rtt-64 rtt 64 2000 busy-ns && count_floor rtt-4K rtt 4096 1000 busy-ns &&
		count_floor stream-64K write 65536 256 busy-ns-per-mib || return
	tell "proof floor soft-RoCE sent +$(($(packets_sent) - before)) packets; best:${floor_modes%,}"
}

: >"$counts"
seen='' address=$ADDR4_0
tell "setting Linux $(uname -r)"
tell "setting compiler $(cc -dumpfullversion)"
load_module || exit
# SMC comes last: as a module it changes what TCP does.
for path in tcp to-tcp from-tcp raw ours-tcp ours-ring tcp-again floor smc; do
	echo "# $path"
	case $path in
	floor)	floor ;;
	*)	count $path ;;
	esac || tell "missing $path $(tail -n 1 "$tmp/err")"
done
