#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=2 kernels=6.12,6.1,debug timeout=900
# The link dies in many ways and at many moments: its streams continue over TCP, return to RDMA
# when there is a link again, and programs do not notice.  Every byte is checked against its
# offset.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"

# shellcheck source=selftests/scenarios/survive-lib.sh
. "$(dirname "$0")/survive-lib.sh"
TC=$(type -P tc)	# that of the VMs is BusyBox's
# shellcheck source=selftests/scenarios/rdma-ports.sh
. "$(dirname "$0")/rdma-ports.sh"

loss=$(cd "$(dirname "$0")" && pwd)/loss.sh
# In the given VMs, or in both.
roce() { "$loss" "$@"; }	# drop|pass [VM...]
rxe() { "$loss" "$2" "$1"; }	# VM del|add

# Packets are held back, neither sent nor lost: rxe stops when too much is in flight, and then
# counts no retries.
clog() {
	local vm any match filters=''
	printf -v any '1 %.0s' {1..16}
	in_all modprobe -a sch_prio sch_plug cls_u32 || return
	for match in "${rdma_tc[@]}"; do
		filters+=" && $TC filter add dev eth0 parent 1: protocol ip u32 match ip $match 0xffff flowid 1:1"
	done
	for vm in 0 1; do
		on $vm "$TC qdisc add dev eth0 root handle 1: prio bands 2 priomap $any &&
			$TC qdisc add dev eth0 parent 1:1 plug $filters" || return
	done
	wait_for 20 both_lost
}

unclog() {
	in_all "$TC" qdisc del dev eth0 root
	renew 0	# rxe's own management QP does not survive that
	renew 1
}

renew() {	# VM: its RDMA device
	rxe "$1" del
	rxe "$1" add
}

lost() {	# VM: the link
	! on "$1" rsctl -j links | jq -e 'any(.[]; .state == "up")' >/dev/null
}

both_lost() { lost 0 && lost 1; }

# Waits until both ends have noticed.  Packets of VM 0 are held back meanwhile, and its driver
# warns after 5 s, so this must be quick.
flap() {
	local status
	set_net link_probe_ms=200 link_stall_ms=600
	on 1 ip link set eth0 down
	wait_for 4 both_lost
	status=$?
	on 1 ip link set eth0 up
	set_net link_probe_ms=500 link_stall_ms=1500
	return $status
}

in_all sysctl -q -w net.ipv6.conf.eth0.keep_addr_on_down=1

for what in busy idle full; do
	lose "RoCE dropped" $what roce drop
	whole "RoCE dropped, $what"
	roce pass
done
for vm in 0 1; do
	lose "RoCE dropped in VM $vm" busy roce drop $vm
	whole "RoCE dropped in VM $vm"
	roce pass $vm
done
for vm in 0 1; do
	for what in busy idle; do
		lose "device of VM $vm removed" $what rxe $vm del
		whole "device of VM $vm removed, $what"
		rxe $vm add
	done
done

for what in busy idle full; do
	if [ "$KERNEL" = debug ]; then
		skip "RoCE held back, $what" "the debug kernel has no sch_plug"
		continue
	fi
	lose "RoCE held back" $what clog
	unclog
	whole "RoCE held back, $what"
done

if [ "$KERNEL" = debug ]; then
	skip "interface down and up" "the debug kernel is too slow for the driver's watchdog"
else
	lose "interface down and up" busy flap
	whole "interface down and up"
	renew 1	# rxe's own management QP does not survive that
fi

# With the default settings: how long do streams stall?  A busy machine only adds to that, so
# the shortest time counts.
patience 15
for try in 1 2 3; do
	lose "as by default, $try" busy roce drop
	whole "as by default, $try"
	roce pass
	pause=$(grep -ho '"longest_pause_ms":[0-9]*' "$tmp/client" "$tmp/server" | cut -d: -f2 | sort -n | tail -n 1)
	diag "nothing moved for $pause ms"
	if [ "$KERNEL" = debug ] || [ "$pause" -le 2000 ]; then break; fi
done
if [ "$KERNEL" = debug ]; then
	skip "as by default: a dead path is left within 2 s" "the debug kernel is too slow to tell"
else
	ok "as by default: a dead path is left within 2 s" test "$pause" -le 2000
fi
patience 14

# The same streams lose two links in a row.
lose "twice" busy roce drop
roce pass
remember
ok "twice: streams return to RDMA" wait_for 30 rings_carry
remember
ok "twice: the link is lost again" roce drop
goes_on "twice"
whole "twice"
roce pass

ok "redis: a link is up" want_link
on_bg 1 "exec rsctl run redis-server --port 6379 --bind 0.0.0.0 --protected-mode no --save '' --appendonly no" >/dev/null
server=$!
ok "redis: it listens" wait_for 20 listens 1 6379
remember
timeout $((150 * SLOW)) rsctl run redis-benchmark -h "$ADDR4_1" -t set,get -n $((4000 / SLOW)) -c 8 -d 4096 -q >"$tmp/redis" 2>&1 &
client=$!
redis_carries() { [ "$(grown 0 ring-tx-bytes)" -gt 500000 ]; }
ok "redis: rings are used" wait_for 30 redis_carries
remember
ok "redis: the link is lost" roce drop
goes_on "redis"
roce pass
wait $client
ok "redis: redis-benchmark succeeds" test $? = 0
tr '\r' '\n' <"$tmp/redis" | grep "requests per second" | diag
kill $server
wait $server 2>/dev/null
ok "redis: no socket remains" wait_for 20 no_sockets
ok "the module can be unloaded" wait_for 20 unload_module
done_testing
