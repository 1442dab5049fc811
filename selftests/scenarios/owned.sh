#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=1 kernels=6.12,6.1,debug timeout=120
# accept() may own a connection for long before the program has it (rs_owner.ko stands in for
# it).  Work that has to wait meanwhile does not keep a CPU busy, and is done afterwards.  Programs
# may own theirs for as long as they like, and however many do, nobody else has to wait.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"

: "${TESTS:=$(dirname "$MODULE").test}"	# with rs_owner.ko, built as rs_hca.ko is
trace=/sys/kernel/tracing
run=$trace/events/workqueue/workqueue_execute_start
ms=$((2000 * SLOW))

# The worker of the streams.
worker() { awk '$3 == "on_work" && $4 == "[rdmastream]" { print "0x" $1 }' /proc/kallsyms; }
count_runs() { echo "function == $(worker)" >$run/filter && echo >$trace/trace && echo 1 >$run/enable; }
runs() { awk '/^(entries|overrun):/ { n += $2 } END { print n }' $trace/per_cpu/cpu*/stats; }
drain_and_not() { rsctl drain on && rsctl drain off; }
export -f drain_and_not

load || bail "cannot load the module"
insmod "$TESTS/rs_owner.ko" || bail "cannot load rs_owner.ko"
[ -d $trace/events ] || mount -t tracefs tracefs $trace || bail "no tracing"
use tcp
set_net loopback=1
ok "runs of the worker can be counted" count_runs
ok "a connection that is owned before accept()" rs_owned "$ADDR4_0" $ms bash -c drain_and_not
n=$(runs)
diag "the worker has run $n times in $ms ms"
ok "its work has waited" test "$n" -ge $((ms / 100))
ok "its work has not kept a CPU busy" test "$n" -le $((ms * 2))
echo 0 >$run/enable

# More than a workqueue runs works at a time.
stuck=300
others() {	# a stream gets a ring while those are stuck
	local file=$tmp/go pid
	rsctl drain on && rsctl drain off || return
	rs_stream -b -k inet -l "$ADDR4_0" -n 200K -t 60 --hold-at 50K --hold "$file" >/dev/null &
	pid=$!
	wait_for 20 eval 'rsctl -j sockets | jq -e "any(.[]; .rx.ring_size)"'
	local status=$?
	echo "status $status" >"$tmp/others"
	touch "$file"
	wait $pid && return $status
}
export -f others wait_for pause
use ring
set_net ring_mode=2 ring_threshold=16384
ok "programs that own $stuck sockets" rs_stuck "$ADDR4_0" $stuck bash -c others
ok "another program gets a ring meanwhile" grep -q "status 0" "$tmp/others"
ok "no socket is left" wait_for 20 no_sockets
ok "rs_owner can be unloaded" rmmod rs_owner
ok "the module can be unloaded" wait_for 20 unload_module
done_testing
