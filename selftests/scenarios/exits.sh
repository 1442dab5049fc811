#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=1 kernels=debug timeout=1800 append=kmemleak=on seed=1
# Namespaces end and the module is unloaded while there are links, and in run n allocation n
# below the module fails, until a run has fewer.  All ends, and nothing is leaked.
# From the environment: LIMIT (seconds), HOWS (netns rmmod), KINDS (slabs pages), FROM (the first n).
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=selftests/scenarios/hca-lib.sh
. "$(dirname "$0")/hca-lib.sh"
# shellcheck source=selftests/scenarios/nomem-lib.sh
. "$(dirname "$0")/nomem-lib.sh"

: "${LIMIT:=3000}" "${HOWS:=netns rmmod}" "${KINDS:=slabs pages}" "${FROM:=1}"

settings() {	# [CMD...]: where
	"$@" sysctl -q -w net.rdmastream.{ack_timeout=18,ring_mode=1,loopback=1,link_flap_decay_ms=100} \
		net.rdmastream.{ring_threshold=4096,ring_idle_ms=600000}
}
has_rings() { "$@" rsctl -o sockets | grep -q 'framed *ring *ring'; }	# [CMD...]: where

# ---- namespaces: their programs are killed, and they end with their links ----

begin_netns() {
	local i
	# a device that is not listed any more may still have its name
	add_device() { host "$1" rdma link add "hca$1" type rs_hca netdev eth0; }
	ip netns add h0 && ip netns add h1 &&
		ip -n h0 link add eth0 type veth peer name eth0 netns h1 || return
	for i in 0 1; do
		ip -n h$i link set lo up && ip -n h$i link set eth0 up &&
			ip -n h$i addr add 10.78.0.$((i + 1))/24 dev eth0 &&
			wait_for 10 add_device $i &&
			settings host $i && host $i sysctl -q -w net.ipv4.tcp_fin_timeout=5 || return
	done
	nsenter --net=/run/netns/h1 rs_stream -s -k inet -p 7500 -n 1M --hold-at 50K --hold "$tmp/never" -t 600 >/dev/null 2>&1 &
	programs=($!)
	nsenter --net=/run/netns/h0 rs_stream -c 10.78.0.2 -k inet -p 7500 -n 1M --hold-at 50K --hold "$tmp/never" --wait \
		-t 600 >/dev/null 2>&1 &
	programs+=($!)
	wait_for 60 has_rings host 0
}
# Each looks for FINs that are lost, and the other end waits for those.
no_more_streams() {
	local i left=0
	for i in 0 1; do none_left host $i || left=1; done
	return $left
}
unused() { [ "$(</sys/module/rdmastream/refcnt)" = 0 ]; }
end_netns() {
	kill -9 "${programs[@]}"
	wait "${programs[@]}" 2>/dev/null
	wait_for 10 no_more_streams || return
	ip netns del h0 && ip netns del h1 && wait_for 60 no_devices && wait_for 10 unused
}

# ---- the module: a link of this host with itself is idle when it is unloaded ----

begin_rmmod() {
	rsctl drain off >/dev/null
	want_link_between 0 0 60 has_link 0
}
end_rmmod() { wait_for 60 rmmod rdmastream; }
again_rmmod() {
	new_rxe && insmod "$MODULE" && settings && below_us
}
again_netns() { :; }

# ---- allocation after allocation ----

# What may still use the module.
in_use() {
	local host
	for host in "" "host 0" "host 1"; do
		$host rsctl -d sockets
		$host rsctl links
		$host ss -tanop
	done
	lsmod
} 2>/dev/null
# Return: 0: the allocation has failed; 1: there are fewer; 2: no life is possible.
live() {	# HOW KNOB NAME N
	local status
	"begin_$1" || { ok "$1: begins" false; return 2; }
	say "$1: number $4 of $3 fails"
	nth "$2" "$4"
	if ! "end_$1"; then
		ok "$1: ends without number $4 of $3" false
		failed=$((failed + 1))
		in_use | diag
	fi
	off "$2" "$4"
	status=$?
	"again_$1" || { ok "$1: begins again" false; return 2; }
	lives=$((lives + 1))
	return $status
}
each() {	# HOW KNOB NAME
	local n i status=0
	for ((n = FROM; ; n++)); do
		[ $SECONDS -lt "$LIMIT" ] || { diag "$1: $3 $n and the rest take too long"; return 1; }
		live "$@" $n || { status=$?; break; }
	done
	# the next ones need to know what the knob has counted, and only a failure tells
	for ((i = 0; i < 3 && status == 1; i++)); do
		live "$@" $n
		status=$?
	done
	diag "$1: $((n - 1)) $3"
	[ $status != 2 ] && { [ "$3" = pages ] || [ $n -gt 1 ]; }
}

exec 3>&1
load_hca || bail "cannot load rs_hca"
modprobe -a rdma_cm
begin_failing
insmod "$MODULE" || bail "cannot load the module"
settings
below_us
say "allocations fail from here on"
lives=0 failed=0
for how in $HOWS; do
	for kind in $KINDS; do
		knob=$inject
		[ "$kind" = slabs ] || knob=$pages
		each $how "$knob" "$kind"
		ok "$how: each of $kind has failed" test $? = 0
	done
done
put require-start=0 require-end=0xffffffffffffffff times=-1
say "allocations fail no more"
ok "namespace and module end, whichever allocation fails" test $failed = 0
diag "$lives lives"
ok "the module can be unloaded" wait_for 60 rmmod rdmastream
ok "no device is left" wait_for 20 no_devices
ok "rs_hca can be unloaded" wait_for 20 rmmod rs_hca
ok "no memory leaks" kmemleak_check
done_testing
