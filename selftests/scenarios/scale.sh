#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=2 kernels=6.12,6.1,debug timeout=900
# 3,000 (or SCALE_IDLE) idle connections and 100 busy ones on one link: the memory of an idle
# connection beyond TCP's, no effect of a reader that does not read on others, and the effect of
# idle connections on the round-trip time of another.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"

idle=${SCALE_IDLE:-3000} busy=100
memory_most=2048	# bytes of an idle connection beyond TCP's
[ "$SLOW" = 1 ] || memory_most=2560	# locks and timers are larger there
rtt_most=120		# per cent of the round trip alone

load 20 || bail "cannot load the module"
in_all sysctl -q -w net.ipv4.ip_local_port_range="10000 64000" \
	net.core.somaxconn=16384 net.ipv4.tcp_max_syn_backlog=16384 fs.file-max=200000
# nothing waits for a minute until sockets in TIME-WAIT are gone
in_all sysctl -q -w net.ipv4.tcp_max_tw_buckets=0
ulimit -n 50000 || bail "no room for $idle descriptors"
# idle ones must not get rings
set_net ring_mode=2 ring_threshold=65536 link_idle_ms=600000 hello_timeout_ms=60000

# Bytes that the kernel itself uses: all memory except free pages (including the per-CPU
# lists), files and processes.
kernel_memory() {	# VM
	on "$1" "sync
		echo 3 >/proc/sys/vm/drop_caches
		for f in /sys/kernel/slab/*/shrink; do echo 1 >\$f; done
		cat /proc/meminfo /proc/zoneinfo" | awk '
		$1 == "MemTotal:" { n += $2 }
		$1 ~ /^(MemFree|Buffers|Cached|AnonPages):$/ { n -= $2 }
		$1 == "count:" { n -= 4 * $2 }
		END { printf "%.0f", 1024 * n }'
}
slab() {	# VM
	on "$1" cat /proc/meminfo | awk '$1 == "Slab:" { printf "%.0f", 1024 * $2 }'
}
# Memory of VM 0 and 1, then their slabs.
measure() { echo "$(kernel_memory 0) $(kernel_memory 1) $(slab 0) $(slab 1)"; }

held() { [ -e "$hold.held" ] && on 1 test -e "$hold.held"; }
open_idle() {	# KIND: $idle connections that have sent a little and stay
	hold=$(fresh "go.$1") port=$((7000 + RANDOM % 2000))
	local shape=(-k "$1" -p "$port" -C "$idle" -n 200 --hold-at 100 --hold "$hold" -w 100 -r 100 -e -t 800)
	on_bg 1 "ulimit -n 50000; exec rs_stream -s ${shape[*]}" >"$tmp/server.$1"
	server=$!
	rs_stream -c "$ADDR4_1" --wait "${shape[@]}" >"$tmp/client.$1" &
	client=$!
	wait_for 300 held
}
close_idle() {	# KIND
	local status=0
	in_all touch "$hold"
	wait $client || status=1
	wait $server || status=1
	diag <"$tmp/client.$1"
	return $status
}
quiet() { ! in_all ss -Htn state connected | grep -q .; }

ok "a link comes up" want_link
set_net ring_mode=2

# A first round fills caches, which do not count.
for kind in tcp4 inet; do
	open_idle $kind
	ok "$kind: warm-up" test $? = 0
	close_idle $kind
	ok "$kind: all connections end normally" test $? = 0
	wait_for 150 quiet
done

# Compares the levels with both kinds, so that leftovers cancel out.
for kind in tcp4 inet; do
	open_idle $kind
	ok "$kind: $idle connections" test $? = 0
	read -ra level <<<"$(measure)"
	diag "$kind: bytes in use, client ${level[0]} (slabs ${level[2]}), server ${level[1]} (slabs ${level[3]})"
	[ $kind = tcp4 ] || break
	tcp=("${level[@]}")
	close_idle $kind
	ok "$kind: all connections end normally" test $? = 0
	wait_for 150 quiet
done
beyond() { echo $(((level[$1] - tcp[$1]) / idle)); }
for vm in 0 1; do
	more=$(beyond $vm)
	diag "VM $vm: $more bytes beyond TCP's; of slabs $(beyond $((vm + 2)))"
	ok "VM $vm: an idle connection costs at most $memory_most bytes beyond TCP's" \
		test $more -le $memory_most
done
modes() { on "$1" rsctl -j sockets | jq -r '.[].mode' | sort | uniq -c; }
ours() {	# plain TCP by now are none
	modes "$1"
	[ "$(modes "$1" | awk '$2 ~ /^(prelude|framed)$/ { n += $1 } END { print +n }')" -ge "$idle" ]
}
ok "none of them has become plain TCP" ours 0
in_all rsctl stats | diag
ok "none of them has a ring" test "$(on 0 rsctl -j links | grep -o '"rx_rings":[0-9]*' | cut -d: -f2)" = 0

# ---- busy ones beside them ----

use ring
mark 0
ok "$busy other streams are busy on rings" stream inet inet -C $busy -n 400K -e -t 300
assert_carrier ring 0 $((busy * 400 * 1024)) $((busy * 400 * 1024)) | diag
ok "all on one link" test "$(on 0 rsctl -j links | grep -o '"state":"up"' | wc -l)" = 1

on_bg 1 rs_stream -s -k inet -p 7001 -n 4M -m 1 --read-delay 60000 -t 400 >"$tmp/slow.server"
slow_server=$!
rs_stream -c "$ADDR4_1" -k inet -p 7001 --wait -n 4M -m 1 -t 400 >"$tmp/slow.client" &
slow_client=$!
stuck() { on 0 rsctl -s -o stats | awk '$1 == "stall-ring" { exit !$2 }'; }
ok "one reader stops reading" wait_for 50 stuck
ok "20 others are not affected" stream inet inet -C 20 -n 500K -e -t 100
ok "the slow reader has not read yet" kill -0 $slow_client

# ---- round trips ----

# The machine may be busy with other work, and more at one time than at another.  So each
# round-trip time is divided by plain TCP's just before, and the median of the quotients counts.
rtt() {	# NAME
	local i kind server=()
	for kind in tcp ours; do
		on_bg 1 "exec rs_bench -s -k $kind -p $((7301 + ${#server[@]}))" >/dev/null 2>&1
		server+=($!)
	done
	for i in 0 1; do wait_for 20 listens 1 $((7301 + i)); done
	for ((i = 0; i < 41; i++)); do
		echo "$(one_rtt tcp 7301) $(one_rtt ours 7302)"
	done >"$tmp/rtt.$1"
	kill "${server[@]}"
	wait "${server[@]}" 2>/dev/null
	diag "$1, us by TCP/ours: $(sed 's, ,/,' "$tmp/rtt.$1" | tr '\n' ' ')"
	awk '$1 > 0 && $2 > 0 { print $2 / $1 }' "$tmp/rtt.$1" | sort -n |
		awk '{ q[NR] = $1 } END { if (NR >= 25) print q[int((NR + 1) / 2)] }' >"$tmp/quotient.$1"
}
one_rtt() {	# KIND PORT: microseconds of 64 bytes there and back
	rs_bench -c "$ADDR4_1" -k "$1" -p "$2" -t 60 -r | awk '$1 == "rtt-64" { print $2 }'
}
wait $slow_client
wait $slow_server
ok "the slow reader gets everything in the end" grep -q '"ok":true' "$tmp/slow.server"
rtt beside
close_idle inet
ok "inet: the idle connections end normally" test $? = 0
ok "no socket remains" wait_for 100 no_sockets
rtt alone
alone=$(<"$tmp/quotient.alone") beside=$(<"$tmp/quotient.beside")
diag "a round trip is $alone of TCP's alone, $beside of it beside $idle idle connections"
ok "round-trip time at most $rtt_most per cent of that without load" \
	awk -v a="$alone" -v b="$beside" -v most=$rtt_most 'BEGIN { exit !(a && b && b * 100 <= a * most) }'
ok "the module can be unloaded" wait_for 40 unload_module
done_testing
