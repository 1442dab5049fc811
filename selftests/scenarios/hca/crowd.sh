#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Many links end at the same time, and their device needs long to release each: more than a
# workqueue runs works at a time.  Their streams go on by TCP at once, and a link over another
# device comes up.  Run by ../hca.sh.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/../lib.sh"

params=/sys/module/rs_hca/parameters
hosts=34 each=8	# addresses of host 1, links to each: 272; a workqueue runs 256 works at a time

load || bail "cannot load the module"
use ring
set_net loopback=1 links_per_path=$each links_per_address=1000 cm_timeout_ms=20000 \
	ring_threshold=4096 ring_idle_ms=600000

up() { on 1 rsctl -j links | jq '[.[] | select(.state == "up")] | length'; }
all_up() { [ "$(up)" -ge $((hosts * each)) ]; }
on_rings() {	# streams of host 1 that receive or send by one
	on 1 rsctl -j sockets | jq '[.[] | select(.tx.ring_size or .rx.ring_size)] | length'
}
own_link() {	# of host 0 with itself
	rsctl -j links | jq -e 'any(.[]; .state == "up" and ([.local, .remote] | all(tostring | test("10\\.77\\.0\\.1([^0-9]|$)"))))'
}
queues() { on 1 rdma -j res show hca1 | jq '.[0].cq'; }	# of host 1's device

programs=()
begin() {	# N: a stream from host 0 to an address of host 1, until "end"
	local shape=(-k inet -p 7500 -n 100K -t 250 --hold-at 50K --hold "$tmp/go.$1")
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
all_end() {
	local pid status=0
	for pid in "${programs[@]}"; do wait "$pid" || status=1; done
	[ $status = 0 ] || grep -L '"ok":true' "$tmp"/server.* "$tmp"/client.* | head -n 3 | xargs cat
	return $status
}

begin_all
ok "streams to $hosts addresses" test $? = 0
ok "... get $((hosts * each)) links" wait_for 60 all_up
diag "$(up) links"
ok "... and rings" wait_for 30 eval '[ "$(on_rings)" -ge $hosts ]'
diag "$(on_rings) streams on rings"

echo -n hca1 >$params/fault_dev
echo 30000 >$params/slow_end_ms
on 1 rsctl drain on >/dev/null 2>&1 &	# which waits
drain=$!
ok "all links end" wait_for 10 eval '[ "$(up)" = 0 ]'
ok "all links end: their streams leave the rings" wait_for 10 eval '[ "$(on_rings)" = 0 ]'
diag "$(on_rings) streams on rings, $(up) links up"
rs_stream -b -k inet -l "$ADDR4_0" -n 100K -t 200 --hold-at 50K --hold "$tmp/itself" >"$tmp/client.itself" 2>&1 &
programs+=($!)
ok "... and a link over another device comes up" wait_for 10 own_link
ok "... while the device is not through" test "$(queues)" -gt $((hosts * each))
echo 0 >$params/slow_end_ms
echo >$params/fault_dev
touch "$tmp/itself"
for ((i = 0; i < hosts; i++)); do touch "$tmp/go.$i"; done
all_end
ok "all streams are complete" test $? = 0
wait $drain
on 1 rsctl drain off >/dev/null
set_net loopback=0 links_per_path=1 links_per_address=64 cm_timeout_ms=3000
for ((i = 0; i < hosts; i++)); do on 1 ip addr del "10.77.0.$((100 + i))/24" dev eth0; done
ok "no stream remains" wait_for 40 no_streams
done_testing
