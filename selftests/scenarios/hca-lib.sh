# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
# For scenarios over rs_hca, beside lib.sh: the module of the devices, and what must be as it
# was before.  From the environment: HCA (the directory of rs_hca.ko; that beside MODULE's).

: "${HCA:=$(dirname "$MODULE").test}"
# shellcheck disable=SC2034	# used by the scenarios that source it
params=/sys/module/rs_hca/parameters

load_hca() {	# [PARAMETER...]
	modprobe -a ib_core rdma_cm && insmod "$HCA/rs_hca.ko" "$@"
}

# Hosts are the namespaces h0, h1 ...
host() { nsenter --net="/run/netns/h$1" "${@:2}"; }	# N CMD...
both() { host 0 "$@" && host 1 "$@"; }	# CMD...

# rs_stream at host 1, and at host 0 to ADDRESS, in the background; sets server, client.
begin_pair() {	# ADDRESS OPTION...
	host 1 rs_stream -s "${@:2}" >"$tmp/server" &
	server=$!
	host 0 rs_stream -c "$1" --wait "${@:2}" >"$tmp/client" &
	client=$!
}
end_pair() {
	local status=0
	wait "$client" || status=1
	wait "$server" || status=1
	[ $status = 0 ] || cat "$tmp/server" "$tmp/client"
	return $status
}

no_devices() { ! rdma link | grep -q hca; }

# Free memory, in KiB.  What the kernel itself keeps for later counts as free: caches, empty slabs,
# pages of a CPU, and the stacks of idle workers, which it ends after five minutes.
memory() {
	local each
	echo 3 >/proc/sys/vm/drop_caches
	for each in /sys/kernel/slab/*/shrink; do [ ! -e "$each" ] || echo 1 >"$each"; done
	awk '/^(MemFree|KernelStack):/ { n += $2 } $1 == "count:" { n += 4 * $2 } END { print n }' \
		/proc/meminfo /proc/zoneinfo
}
# The kernel itself may keep some MiB after the first use, for each CPU.
memory_is_back() {	# KIB: that were free before
	local now
	now=$(memory)
	echo "free before: $1 KiB, now: $now"
	[ "$now" -gt $(($1 - 16 * 1024 * $(nproc))) ]
}
