#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=1 kernels=debug timeout=600 append=kmemleak=on
# For each call site in the module, the first allocation below it fails once, in a program, a
# worker or a softirq, during a run of nomem-lib.sh.  Data is correct or an error is returned,
# and nothing is leaked.  nomem.sh does this while the module is loaded.  From the environment:
# SITES (a pattern of callers; all), LIVES (maximum number of runs).
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=selftests/scenarios/nomem-lib.sh
. "$(dirname "$0")/nomem-lib.sh"

here=$(dirname "$0")
: "${SITES:=.}" "${LIVES:=1000}"
# callees that may allocate, and names that only look like it
may='alloc|kmemdup|create|clone|expand|new|tcp_sendmsg|splice|connect|cmsg|idr_preload'
may+='|^rdma_(bind|listen|resolve|accept|reject)|register|genlmsg_put|ib_map|ib_modify'
not='^rstream_|unregister|dealloc|free|vmalloc_addr|disconnect'
not+='|^(genlmsg_put|put_cmsg|sock_cmsg_send|sk_stream_wait_connect|splice_to_pipe|perf_trace_buf_alloc)$|^__asan_'
# callers that run only then
loading='(^|_)init$|^learn$|^door|^wqs_init'

# SECTION OFFSET CALLER CALLEE of each
sites() {
	objdump -dr --no-show-raw-insn "$MODULE" | awk -f "$here/callsites.awk" |
		awk -v may="$may" -v not="$not" -v caller="$SITES" -v loading="$loading" \
			'$4 ~ may && $4 !~ not && $3 ~ caller && $1 !~ /init|exit/ &&
			 ($3 !~ loading || $3 ~ /_net_init$/)'
}
# Only allocations below this call site.
only_at() {	# SECTION OFFSET
	local at
	at=$(printf '%#x' $(($(<"/sys/module/rdmastream/sections/$1") + 0x$2)))
	put "require-start=$at" "require-end=$(printf '%#x' $((at + 1)))"
}
reached() { [ "$(<$inject/times)" = 0 ] || [ "$(<$pages/times)" = 0 ]; }

# What is in no life of nomem-lib.sh: other ways to read and to write, events, settings.
further() {
	local monitor
	rsctl monitor >/dev/null 2>&1 &
	monitor=$!
	rs_stream -b -k rds4 -l "$ADDR4_0" -C 2 -n 100K -w 3000 -e -R peek -W iov -t 60 >"$tmp/out" 2>&1
	told $? || return
	rs_stream -b -k inet6 -l "$ADDR6_0" -n 60K -W sendfile -R waitall --half-close -t 60 >"$tmp/out" 2>&1
	told $? || return
	kill $monitor 2>/dev/null
	wait $monitor 2>/dev/null
	true
}

once() {	# SECTION OFFSET CALLER CALLEE
	only_at "$1" "$2"
	say "$3 calls $4 in vain"
	put times=1 interval=1 probability=100
	life && further
	local status=$?
	put probability=0
	if reached; then
		reached_sites=$((reached_sites + 1))
	else
		missed+=" $3>$4"
	fi
	[ $status = 0 ] || ok "$3 calls $4 in vain" false
	[ $status = 0 ] && wait_for 60 none_left
}

exec 3>&1
modprobe -a rdma_cm
begin_failing
insmod "$MODULE" || bail "cannot load the module"
set_net ack_timeout=18 ring_mode=1 loopback=1 ring_threshold=4096 link_flap_decay_ms=100 \
	ring_idle_ms=600000 histograms=1
say "allocations fail from here on"
lives=0 reached_sites=0 missed='' failed=0
while read -ru 4 section offset caller callee; do
	[ $lives -lt "$LIVES" ] || break
	lives=$((lives + 1))
	once "$section" "$offset" "$caller" "$callee" || failed=$((failed + 1))
done 4< <(sites)
put require-start=0 require-end=0xffffffffffffffff times=-1
say "allocations fail no more"
diag "$lives calls, $reached_sites have failed; not reached:$missed"
ok "call sites are found" test $lives -gt 0
ok "whichever call fails, data is correct or an error is returned" test $failed = 0
ok "more than half of the call sites are reached" test $((2 * reached_sites)) -gt $lives
new_rxe
rsctl drain off >/dev/null
ok "streams work again" rs_stream -b -k rds4 -l "$ADDR4_0" -n 300K -t 60
ok "no socket remains" wait_for 60 none_left
ok "the module can be unloaded" wait_for 20 rmmod rdmastream
ok "no memory leaks" kmemleak_check
done_testing
