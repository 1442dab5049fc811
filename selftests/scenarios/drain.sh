#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=2 kernels=6.12,6.1,debug timeout=600
# An administrator drains a host with active streams, unloads the driver, loads it again and
# ends the drain; programs do not notice.  rsctl reports all this.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"

# so that no case passes because a link timed out
load 20 || bail "cannot load the module"
# rings do not change except by a drain
set_net ring_idle_ms=3600000 ring_size=32768
idle=2M conns=4

# ---- what rsctl tells ----

sockets() { on "$1" rsctl -j sockets; }	# VM
# FILTER of jq over the sockets with records that a program has, in VM: all of
# them, and there are some
each() {	# VM FILTER
	sockets "$1" | jq -e "[.[] | select(.mode == \"framed\")] | length > 0 and all(.[]; $2)"
}
at_least() {	# N VM FILTER
	[ "$(sockets "$2" | jq "[.[] | select(.mode == \"framed\" and ($3))] | length")" -ge "$1" ]
}
all_on() {	# tcp|ring
	each 0 ".tx.carrier == \"$1\" and .rx.carrier == \"$1\"" &&
		each 1 ".tx.carrier == \"$1\" and .rx.carrier == \"$1\""
}
no_links() { [ "$(on "$1" rsctl -j links | jq length)" = 0 ]; }
state() { on "$1" rsctl -j drain | jq -e "$2"; }	# VM FILTER
# How many events of VM since "monitor" fit
told() {	# VM FILTER
	on "$1" jq -en "[inputs | select($2)] | length | select(. > 0)" "$tmp/events"
}
monitor() {	# VM
	on "$1" mkdir -p "$tmp"
	on "$1" rm -f "$tmp/events"
	on_bg "$1" "exec rsctl -j monitor >$tmp/events"
	monitors+=($!)
	wait_for 20 on "$1" grep -q drain "$tmp/events"
}

# ---- streams ----

# Two streams that are always busy, and idle ones that continue on request.
start() {
	hold=$(fresh go)
	mark 0
	mark 1
	local port=$((7000 + RANDOM % 20000))
	local busy=(-C 2 -p "$port" -t 300 -n 1M --until "$hold" --pace 200)
	on_bg 1 rs_stream -s -k inet "${busy[@]}" >"$tmp/out.0"
	pids=($!)
	rs_stream -c "$ADDR4_1" -k inet --wait "${busy[@]}" >"$tmp/out.1" &
	pids+=($!)
	idle $conns $((port + 1)) 2
	wait_for 40 carries ring 500000
}
idle() {	# CONNS PORT FILE
	local args=(-C "$1" -p "$2" -t 300 -n "$idle" --hold-at 1M --hold "$hold")
	on_bg 1 rs_stream -s -k rds4 "${args[@]}" >"$tmp/out.$3"
	pids+=($!)
	rs_stream -c "$ADDR4_1" -k inet --wait "${args[@]}" >"$tmp/out.$(($3 + 1))" &
	pids+=($!)
}
carries() {	# ring|tcp BYTES: since "mark", in both directions
	[ "$(grown 0 "$1-tx-bytes")" -gt "$2" ] && [ "$(grown 0 "$1-rx-bytes")" -gt "$2" ]
}
ended() { ! kill -0 "${pids[@]}" 2>/dev/null; }
whole() {
	in_all touch "$hold"
	wait_for 200 ended
	cat "$tmp"/out.?
	[ "$(grep -l '"ok":true' "$tmp"/out.? | wc -l)" = 6 ]
}

# ---- the driver ----

loss=$(cd "$(dirname "$0")" && pwd)/loss.sh

remove() {	# VM
	"$loss" del "$1" && "$loss" unload "$1" &&
		! on "$1" grep -q "^${RDMA/rxe/rdma_rxe} " /proc/modules
}
restore() { "$loss" load "$1"; }

# Once on each host, because one of them is the active side.
for vm in 0 1; do
	other=$((1 - vm))
	monitors=()
	ok "VM $vm: a link is up" want_link
	active=$(on $other rsctl -j links | jq '.[0].active')
	ok "VM $vm: not drained" state $vm '.[0].drain == false and .[0].links > 0'
	# not within "ok", because they start background processes
	monitor $vm && monitor $other
	ok "VM $vm: monitor receives events" test $? = 0
	start
	ok "VM $vm: streams are on rings" test $? = 0
	mark 0
	mark 1
	ok "VM $vm: drained" on $vm rsctl drain on
	ok "VM $vm: it has no links" no_links $vm
	ok "VM $vm: rsctl shows it" state $vm '.[0].drain and .[0].links == 0'
	ok "VM $vm: a second drain is no error" on $vm rsctl drain on
	ok "VM $vm: all streams are on TCP" wait_for 30 all_on tcp
	ok "VM $vm: every socket shows the reason" wait_for 10 each $vm '.reason == "drained" and .tx.switch_reason == "drained" and .tx.switches >= 2'
	ok "VM $vm: no link was lost" test "$(grown $vm links-lost)" = 0 -a "$(grown $vm links-drained)" -gt 0
	if [ "$active" = true ]; then
		ok "VM $other: sockets show that the peer is drained" wait_for 60 at_least $conns $other '.reason == "peer-drained"'
	fi
	ok "VM $vm: streams continue" wait_for 30 carries tcp 200000
	ok "VM $vm: the driver can be unloaded" remove $vm
	idle 2 $((7000 + RANDOM % 20000)) 4
	ok "VM $vm: new streams use records" wait_for 60 \
		at_least 2 $vm '.tx.switches == null and .tx.tcp_bytes >= 1048576'
	ok "VM $vm: the driver can be loaded" restore $vm
	ok "VM $vm: still no links" no_links $vm
	ok "VM $vm: no longer drained" on $vm rsctl drain off
	ok "VM $vm: streams return to RDMA" wait_for 60 all_on ring
	ok "VM $vm: streams that started during the drain move to RDMA" at_least 2 $vm '.tx.switches == 1'
	ok "VM $vm: every socket shows the reason" each $vm '.tx.switch_reason == "ring-granted" and .tx.switch_to == "ring" and .tx.epoch > 0 and .tx.offset >= 1048576 and .tx.switch_ms < 600000'
	ok "VM $vm: all streams are complete" whole
	ok "VM $vm: no socket remains" wait_for 20 no_sockets
	for e in '.event == "drain" and .drain' '.event == "drain" and (.drain | not)' \
		'.event == "link-down" and .reason == "drained" and .device == "'"$RDMA"'0"' \
		'.event == "link-up" and .local and .remote' \
		'.event == "switch" and .dir == "tx" and .carrier == "tcp" and .reason == "drained" and .offset > 0' \
		'.event == "switch" and .dir == "rx" and .carrier == "tcp" and .reason == "drained"' \
		'.event == "switch" and .dir == "rx" and .carrier == "ring" and .epoch == 2 and .link > 0'; do
		ok "VM $vm: event $e" told $vm "$e"
	done
	for e in '.event == "link-down" and .reason == "link-lost"' \
		'.event == "switch" and .carrier == "tcp" and .reason == "link-lost" and .local and .remote'; do
		ok "VM $other: event $e" told $other "$e"
	done
	kill "${monitors[@]}"
	wait "${monitors[@]}" 2>/dev/null
done

# ---- refusals ----

refused() {	# STATUS WORDS CMD...
	local want=$1 words=$2 status=0
	shift 2
	"$@" >"$tmp/refused" 2>&1 || status=$?
	cat "$tmp/refused"
	[ $status = "$want" ] && grep -q -- "$words" "$tmp/refused"
}
noadmin() { setpriv --bounding-set=-net_admin --inh-caps=-net_admin "$@"; }

ok "an unprivileged user cannot start a drain" refused 1 CAP_NET_ADMIN noadmin rsctl drain on
ok "an unprivileged user has not started a drain" state 0 '.[0].drain == false'
ok "an unprivileged user can see whether it is drained" noadmin rsctl drain
ok "a timeout that is not a number is refused" refused 2 "not a number" rsctl drain on tomorrow
ok "an argument other than on and off is refused" refused 2 '"on" or "off"' rsctl drain half
ok "\"drain off\" with a timeout is refused" refused 2 "unexpected argument" rsctl drain off 3
ok "a drain in a new network namespace" unshare -Urn rsctl drain on
ok "a drain in a new network namespace does not drain this one" state 0 '.[0].drain == false'
ok "monitor with an argument is refused" refused 2 "no argument" rsctl monitor all
ok "counters show switches by reason" sh -c "rsctl -j stats | jq -e '[.[] | select(.kind == \"switch\" and .name == \"drained\")] | length == 1'"

# ---- alone ----

ok "a drain without links" sh -c 'rsctl drain off && rsctl drain off && rsctl drain on && rsctl drain on'
ok "streams use the tcp carrier" carried tcp $((1024 * 1024)) inet inet
ok "no longer drained" rsctl drain off
ok "a link comes up" want_link

# ---- in silence ----

"$loss" drop
before=$SECONDS
ok "a drain when the peer does not answer" rsctl drain on
diag "that took $((SECONDS - before)) s"
"$loss" pass
ok "no longer drained" rsctl drain off
ok "a link comes up" want_link 60

# ---- traces ----

trace=/sys/kernel/tracing
[ -d $trace/events ] || mount -t tracefs tracefs $trace
traced() { grep -q "$1" $trace/trace; }
ok "events can be traced" sh -c "echo 1 >$trace/events/rdmastream/enable"
ok "a stream while tracing" carried ring $((1024 * 1024)) inet inet
ok "a drain while tracing" rsctl drain on
for e in 'rstream_grant:.* epoch=1 ' 'rstream_switch:.* to=ring .* reason=RING_GRANTED' \
	"rstream_link_lost:.* device=${RDMA}0"' reason=DRAINED why="the host is drained"'; do
	ok "traced: $e" traced "$e"
done
grep -m 4 rstream_ $trace/trace | diag
echo 0 >$trace/events/rdmastream/enable
ok "the module can be unloaded" wait_for 20 unload_module
done_testing
