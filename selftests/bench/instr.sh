#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The guest's part of "scripts/bench instr": every way of carrying a stream within the
# VM, between two sockets at its own address; and RDMA writes without a stream, from
# the device to itself.  What begins with "free-" is between two network namespaces,
# which a veth pair joins, and its RDMA devices are rs_hca: no wire, no packets, only
# bytes copied.  "late-" is the same with devices that take 1 to 2 us for each request, as
# hardware does.  scripts/bench instr calls it.
#
# From the environment: MODULE, FLOOR (rs_floor.ko), HCA (rs_hca.ko), TOOLS (rsctl), BIN
# (rs_bench, smc_setup), SYMBOLS (where those of the kernel go; or none).  Arguments: what
# to count, of all.  Writes
# $RESULTS/counts:
#	setting TEXT		what matters
#	count PATH NAME VALUE
#	proof PATH TEXT
#	missing PATH TEXT	why it could not be counted
# Time leaps whenever the VM idles, so nothing here has a time limit.
# shellcheck source=selftests/bench/lib.sh
. "$(dirname "$0")/lib.sh"
shopt -s extglob

counts=${RESULTS:?}/counts
# What is counted reads no file of the host.
cp "$BIN/rs_bench" "$BIN/smc_setup" "$TOOLS/rsctl" "$FLOOR" "$HCA" "$tmp"
BIN=$tmp TOOLS=$tmp FLOOR=$tmp/${FLOOR##*/} HCA=$tmp/${HCA##*/}

tell() { echo "$*" >>"$counts"; }

# client and server
declare -A client=([tcp]=tcp [to-tcp]=ours [from-tcp]=tcp [raw]=ours [ours-tcp]=ours
	[ours-ring]=ours [tcp-again]=tcp [smc]=smc)
declare -A server=([tcp]=tcp [to-tcp]=tcp [from-tcp]=ours [raw]=ours [ours-tcp]=ours
	[ours-ring]=ours [tcp-again]=tcp [smc]=smc)

# Commands that let another one run where the client is, and the server.
client_at=() server_at=()

set_net() {	# NAME=VALUE...
	"${client_at[@]}" sysctl -q -w "${@/#/net.rdmastream.}" &&
		"${server_at[@]}" sysctl -q -w "${@/#/net.rdmastream.}"
}

# The devices have the addresses of the CPU, as soft-RoCE does.
add_free_hosts() {
	local i at
	insmod "$HCA" profile=plain dma=virt fault_delay_us=2 && ip netns add h0 && ip netns add h1 &&
		ip -n h0 link add eth0 type veth peer name eth0 netns h1 || return
	for i in 0 1; do
		at=(nsenter "--net=/run/netns/h$i")
		"${at[@]}" ip -batch - <<-END || return
			link set lo up
			link set eth0 up
			addr add 10.78.0.$((i + 1))/24 dev eth0
		END
		"${at[@]}" rdma link add hca$i type rs_hca netdev eth0 || return
	done
}

# Where the client and the server of PATH run.
go_to() {
	local late=0
	[[ $1 != late-* ]] || late=1
	echo $late >/sys/module/rs_hca/parameters/fault_delay
	case $1 in
	free-*|late-*)
		client_at=(nsenter --net=/run/netns/h0)
		server_at=(nsenter --net=/run/netns/h1) address=10.78.0.2 ;;
	*)
		client_at=() server_at=() address=$ADDR4_0 ;;
	esac
}

# SMC-R takes the RDMA device of the network that the connection uses, and without
# version 1 does not learn the peer's MAC address, by which soft-RoCE tells packets
# to itself.  On "lo" that address is 0, as SMC assumes.
prepare_smc() {
	modprobe smc
	if [ ${#client_at[@]} != 0 ]; then
		# which PNET a device is of is said in the first namespace only
		"${client_at[@]}" "$BIN/smc_setup" add eth0 hca0 &&
			"${server_at[@]}" "$BIN/smc_setup" add eth0 hca1 &&
			"$BIN/smc_setup" add eth0 hca0 && "$BIN/smc_setup" add eth0 hca1
		return
	fi
	address=10.77.1.1
	ip link set lo mtu "$(cat /sys/class/net/eth0/mtu)"
	ip addr add $address/24 dev lo
	rdma link add rxe1 type rxe netdev lo
	"$BIN/smc_setup" add lo rxe1
}

prepare() {	# PATH
	case ${1#@(free|late)-} in
	raw)	set_net negotiate=0 ;;
	ours-tcp)
		set_net negotiate=1 ring_mode=0 loopback=1 ;;
	ours-ring)	set_net negotiate=1 ring_mode=2 loopback=1 ;;
	smc)	prepare_smc ;;
	*)	set_net negotiate=1 ;;
	esac
}

# Those of the client.
counters() {	# PATH
	case $1 in
	*smc)	"${client_at[@]}" "$BIN/smc_setup" stats ;;
	*)	"${client_at[@]}" "$TOOLS/rsctl" -j stats | named_values ;;
	esac
}

# Within a host both ends are in the same counters.
carried_within() {
	local sent received
	sent=$(value sent "$tmp/out") received=$(value received "$tmp/out")
	if [ ${#client_at[@]} = 0 ]; then
		sent=$((sent + received)) received=$sent
	fi
	carried "$@" "$sent" "$received"
}

# What shows that PATH was taken.  Fails if it was not.
proof() {
	case ${1#@(free|late)-} in
	tcp*)		echo "plain socket(AF_INET, SOCK_STREAM, 0)" ;;
	to-tcp|raw)	became fallbacks ;;
	from-tcp)	became plain-accepts ;;
	ours-tcp)	carried_within tcp- 99 && (($(grown ring-tx-bytes) == 0)) ;;
	ours-ring)		carried_within ring- 90 ;;	# what comes first is on TCP
	smc)		carried_within "" 99 ;;
	esac
}

count() {	# PATH
	local path=$1 way=${1#@(free|late)-} shown pid status port=$((7300 + ${#seen})) load
	seen+=.
	go_to "$path"
	# As SCHED_BATCH, an end that wakes the other goes on until it has to wait: how often
	# they take turns would otherwise depend on next to nothing.
	load=(chrt -b 0 "$BIN/rs_bench" -p "$port")
	prepare "$path" >"$tmp/err" 2>&1 || return
	"${server_at[@]}" "${load[@]}" -s -k "${server[$way]}" 2>"$tmp/err" &
	pid=$!
	until "${server_at[@]}" ss -Hltn "sport = :$port" | grep -q .; do
		kill -0 $pid 2>/dev/null || return
		sleep 0.1
	done
	[ -z "${SYMBOLS-}" ] || cp /proc/kallsyms "$SYMBOLS"
	counters "$path" >"$tmp/before"
	"${client_at[@]}" "${load[@]}" -i -k "${client[$way]}" -c "$address" >"$tmp/out" 2>>"$tmp/err"
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

# What the RDMA devices have done.
done_by() {	# PATH
	case $1 in
	free-*|late-*)
		awk '$2 == "requests" { n += $3 } END { print n }' /sys/module/rs_hca/parameters/counts ;;
	*)	packets_sent ;;
	esac
}

# count_floor PATH NAME OP SIZE N VALUE: in the mode that takes least.  No polling all the
# time, which counts what there is.  A device with itself.
count_floor() {
	local mode n best='' best_mode='' to=$ADDR4_0
	[[ $1 != @(free|late)-* ]] || to=10.78.0.1
	for mode in softirq workqueue; do
		floor_once addr="$to" self=1 op="$3" size="$4" count="$5" mode=$mode \
			>"$tmp/out" 2>"$tmp/err" || return
		n=$(value "$6" "$tmp/out")
		if [ -z "$best" ] || ((n < best)); then
			best=$n best_mode=$mode
		fi
	done
	tell "count $1 $2 $best"
	floor_modes+=" $2 $best_mode,"
}

floor() {	# PATH
	local floor_modes='' before
	go_to "$1"
	floor_by=("${client_at[@]}")
	before=$(done_by "$1")
	count_floor "$1" rtt-64 rtt 64 2000 busy-ns &&
		count_floor "$1" rtt-4K rtt 4096 1000 busy-ns &&
		count_floor "$1" stream-64K write 65536 256 busy-ns-per-mib || return
	tell "proof $1 +$(($(done_by "$1") - before)) ${what_device_does[$1]}; best:${floor_modes%,}"
}
declare -A what_device_does=([floor]="packets that soft-RoCE sent"
	[free-floor]="requests that rs_hca executed" [late-floor]="requests that rs_hca executed")

: >"$counts"
seen=''
tell "setting Linux $(uname -r)"
tell "setting compiler $(cc -dumpfullversion)"
load_module || exit
add_free_hosts || exit
# SMC comes last: as a module it changes what TCP does.
[ $# != 0 ] || set -- tcp to-tcp from-tcp raw ours-tcp ours-ring tcp-again floor \
	free-tcp free-ours-tcp free-ours-ring free-floor late-ours-ring late-floor \
	smc free-smc late-smc
for path; do
	echo "# $path"
	case $path in
	*floor)	floor $path ;;
	*)	count $path ;;
	esac || tell "missing $path $(tail -n 1 "$tmp/err")"
done
