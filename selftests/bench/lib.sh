# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# What streams.sh and instr.sh share: counters before and after, in files in $tmp.
set -u
: "${MODULE:?}" "${TOOLS:?}" "${BIN:?}"
# shellcheck source=/dev/null
. "$LAB"

tmp=$(mktemp -d)
net_device=${NET_DEVICE:-eth0} rdma_device=${RDMA_DEVICE:-rxe0}

# rsockets for programs that know sockets only
rsockets_preload() {
	ldconfig -p | sed -n 's/.*=> \(.*\/\)librdmacm\.so.*/\1rsocket\/librspreload.so/p' | head -n 1
}

# rs_bench as PATH of ${kind[@]} wants it, in $load
load_of() {	# PATH PORT
	load=(env)
	[ "$1" != rsockets ] || load+=(LD_PRELOAD="$(rsockets_preload)")
	load+=("$BIN/rs_bench" -k "${kind[$1]}" -p "$2")
	[ "$1" != rsockets ] || load+=(-P)
}

# SMC-R shall find soft-RoCE in both VMs.
smc_up() {
	if ! in_all modprobe -q smc; then
		echo "no SMC in this kernel (Debian's 7.x have none)"
		return 1
	fi
	in_all "$BIN/smc_setup" add "$net_device" "$rdma_device"
}

grown() {	# NAME
	echo $(($(value "$1" "$tmp/after") - $(value "$1" "$tmp/before")))
}

# From JSON of rsctl lines "NAME VALUE"
named_values() { jq -r '.[] | "\(.name) \(.value)"'; }

# rdmastream's counters in VM N
our_counters() {	# N
	on "$1" "$TOOLS/rsctl" -j stats | named_values
}

# carried NAME-PREFIX LEAST-PERCENT SENT RECEIVED [BUT]: so many bytes of each, of
# which so many may be missing anyway
carried() {
	local tx rx but=${5-0}
	tx=$(grown "$1tx-bytes") rx=$(grown "$1rx-bytes")
	echo "${1}tx-bytes +$tx of $3 sent, ${1}rx-bytes +$rx of $4 received"
	(($3 > 0 && tx + rx > 0 && (tx + but) * 100 >= $3 * $2 && (rx + but) * 100 >= $4 * $2))
}

# became NAME: what so many of our sockets were; none had records.
became() {
	local n
	n=$(grown "$1")
	echo "$1 +$n, tcp-tx-bytes +$(grown tcp-tx-bytes), ring-tx-bytes +$(grown ring-tx-bytes)"
	((n > 1 && $(grown tcp-tx-bytes) == 0 && $(grown ring-tx-bytes) == 0))
}

packets_sent() {	# by soft-RoCE
	cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts
}

# floor_once PARAMETER...: "NAME VALUE" lines of rs_floor.ko as client.  The
# command in $floor_by runs insmod, for example with a time limit.
floor_by=()
floor_once() {
	"${floor_by[@]}" insmod "$FLOOR" "$@" || return
	cat /sys/module/rs_floor/parameters/result
	rmmod rs_floor
}
