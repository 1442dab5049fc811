#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Links wait for their device: more of them than a workqueue runs works at a time, which is 256, but
# few enough for a test here.
# When it needs long to release each: their streams go on by TCP at once, and a link over another
# device comes up.  When it needs long to register memory: the timers of another link run, and these
# links can end.  Run by ../hca.sh.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/../lib.sh"

params=/sys/module/rs_hca/parameters
hosts=2 each=8	# addresses of host 1, links to each
at_a_time=2

load || bail "cannot load the module"
queues=/sys/devices/virtual/workqueue
max_active=$(<$queues/rdmastream_memory/max_active)
limit_queues() { echo "$1" | tee $queues/rdmastream_*/max_active >/dev/null; }
limit_queues $at_a_time || bail "cannot limit the workqueues"
use ring
set_net loopback=1 links_per_path=$each links_per_address=1000 cm_timeout_ms=20000 \
	ring_threshold=4096 ring_idle_ms=600000
hurry	# earlier scenarios may have left paths that wait

up() { on 1 rsctl -j links | jq '[.[] | select(.state == "up")] | length'; }
all_up() { [ "$(up)" -ge $((hosts * each)) ]; }
on_rings() {	# streams of host 1 that receive or send by one
	on 1 rsctl -j sockets | jq '[.[] | select(.tx.ring_size or .rx.ring_size)] | length'
}
own_link() {	# of host 0 with itself
	rsctl -j links | jq -e 'any(.[]; .state == "up" and ([.local, .remote] | all(tostring | test("10\\.77\\.0\\.1([^0-9]|$)"))))'
}
cqs() { on 1 rdma -j res show hca1 | jq '.[0].cq'; }	# of host 1's device

programs=()
begin() {	# N: streams from host 0 to an address of host 1, until "go"
	local shape=(-k inet -C "$each" -p 7500 -n 8M -t 250 --hold-at 50K --hold "$tmp/go.$1")
	on 1 ip addr add "10.77.0.$((100 + $1))/24" dev eth0 || return
	on_bg 1 rs_stream -s -l "10.77.0.$((100 + $1))" "${shape[@]}" >"$tmp/server.$1" 2>&1
	programs+=($!)
	rs_stream -c "10.77.0.$((100 + $1))" --wait "${shape[@]}" >"$tmp/client.$1" 2>&1 &
	programs+=($!)
}
begin_all() {
	local i
	for ((i = 0; i < hosts; i++)); do begin $i || return; done
}
go() { for ((i = 0; i < hosts; i++)); do touch "$tmp/go.$i"; done; }
# Workers that register memory.
workers() { cat /proc/[0-9]*/comm 2>/dev/null | grep -c "+rdmastream_mem"; }
begin_itself() {	# FILE: a stream of host 0 with itself, until FILE exists
	rs_stream -b -k inet -l "$ADDR4_0" -n 100K -t 200 --hold-at 50K --hold "$1" >"$tmp/client.itself" 2>&1 &
	programs+=($!)
}
all_end() {
	local pid status=0
	for pid in "${programs[@]}"; do wait "$pid" || status=1; done
	[ $status = 0 ] || grep -L '"ok":true' "$tmp"/server.* "$tmp"/client.* | head -n 3 | xargs cat
	return $status
}

begin_all
ok "streams to $hosts addresses" test $? = 0
ok "streams get $((hosts * each)) links" wait_for 60 all_up
diag "$(up) links"
ok "streams get rings" wait_for 30 eval '[ "$(on_rings)" -ge $hosts ]'
diag "$(on_rings) streams on rings"

makes=$(maker)
echo -n hca1 >$params/fault_dev
echo 30000 >$params/slow_end_ms
on 1 rsctl drain on >/dev/null 2>&1 &	# which waits
drain=$!
ok "all links end" wait_for 10 eval '[ "$(up)" = 0 ]'
ok "all links end: their streams leave the rings" wait_for 10 eval '[ "$(on_rings)" = 0 ]'
diag "$(on_rings) streams on rings, $(up) links up"
begin_itself "$tmp/itself"
ok "all links end: a link over another device comes up" wait_for 10 own_link
ok "all links end: the device is still busy" test "$(cqs)" -gt $((hosts * each))
echo 0 >$params/slow_end_ms
echo >$params/fault_dev
touch "$tmp/itself"
wait $drain
# the host that makes the links begins when both can, and makes all at once
on $makes rsctl drain on >/dev/null
on $((1 - makes)) rsctl drain off >/dev/null
on $makes rsctl drain off >/dev/null

ok "links come up again" wait_for 60 all_up
diag "$(up) links"
ok "links come up again: streams get rings" wait_for 60 eval '[ "$(on_rings)" -ge $((hosts * each)) ]'
diag "$(on_rings) streams on rings, $(up) links up"
begin_itself "$tmp/later"
ok "a link over another device comes up" wait_for 10 own_link
echo -n hca1 >$params/fault_dev
echo 25000 >$params/slow_mr_ms
echo 5000000 >$params/rate
go	# busy rings grow, and a link begins with memory for two small ones
ok "registrations: their workers wait for the device" wait_for 60 eval '[ "$(workers)" -ge $at_a_time ]'
diag "$(workers) workers"
touch "$tmp/later"
on 0 sysctl -q -w net.rdmastream.link_idle_ms=500
ok "registrations: the other link ends when it is idle" wait_for 10 eval '! own_link >/dev/null'
on 0 sysctl -q -w net.rdmastream.link_idle_ms=30000
on 1 rsctl drain on >/dev/null 2>&1 &
drain=$!
ok "registrations: links can end, and streams leave the rings" wait_for 10 eval '[ "$(on_rings)" = 0 ]'
diag "$(on_rings) streams on rings, $(workers) workers"
all_end
ok "all streams are complete" test $? = 0
ok "registrations: the device is still busy" test "$(workers)" -gt 0
echo 0 >$params/slow_mr_ms
echo 0 >$params/rate
echo >$params/fault_dev
wait $drain
on 1 rsctl drain off >/dev/null
limit_queues "$max_active"
set_net loopback=0 links_per_path=1 links_per_address=64 cm_timeout_ms=3000
for ((i = 0; i < hosts; i++)); do on 1 ip addr del "10.77.0.$((100 + i))/24" dev eth0; done
ok "no stream remains" wait_for 40 no_streams
done_testing
