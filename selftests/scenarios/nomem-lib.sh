# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
# For scenarios in which allocations fail; sourced behind lib.sh.  Only the debug kernel
# can do that; elsewhere FAULTS may be a directory in which nothing happens.

: "${FAULTS:=/sys/kernel/debug}"
inject=$FAULTS/failslab
pages=$FAULTS/fail_page_alloc
[ -d $inject ] || bail "this kernel cannot let allocations fail"

put() {		# NAME=VALUE...: for slabs and for pages
	local one dir
	for one; do
		for dir in $inject $pages; do echo "${one#*=}" >"$dir/${one%%=*}"; done
	done
}
begin_failing() {
	put task-filter=N verbose=0 ignore-gfp-wait=N probability=0 times=-1
	echo 0 >$pages/min-order
	# copies from and to user space must not fail; "fail-nth" would count them
	echo 1 >"$FAULTS/fail_usercopy/require-end"
	echo 32 | tee $inject/stacktrace-depth >$pages/stacktrace-depth
}

# Each end of each connection succeeds or gets an error.  After an error, the other direction
# may see end of file.  End of file alone would be wrong, unless the program at the other end has
# closed because one of its own calls found no memory.
honest() {
	python3 -c '
import json, sys
result = json.loads(sys.stdin.readlines()[-1])
conns = {}
for e in result["first_errors"]:
    conns.setdefault(e["conn"], {}).setdefault(e["side"], set()).add(e["error"])
memory = {"ENOMEM", "ENOBUFS"}
told = memory | {"ECONNRESET", "ETIMEDOUT", "EPIPE"}
after = told | {"ENODATA", "ENOTCONN"}
def lies(errors, others):
    return errors - after or not told & errors and not memory & others
sys.exit(result["timed_out"] or
         any(lies(errors, set().union(*(o for s, o in sides.items() if s != side)))
             for sides in conns.values() for side, errors in sides.items()))'
}
# TCP drops a FIN for which it has no memory, and does not retry: any socket then stays without
# a timer until an administrator ends it, or waits for the other end's FIN.
none_left() {	# [CMD...]: where
	local state from to
	"$@" ss -Hton state last-ack state fin-wait-1 state closing | grep -v timer: |
		while read -r state _ _ from to _; do
			diag "$state, and no FIN under way: $from $to" >&3
			"$@" ss -HKtn src "$from" dst "$to" >/dev/null
		done
	! "$@" rsctl -j sockets | grep -q '"mode"'
}
on_ring() { rsctl -o sockets | grep -q 'framed *ring *ring'; }
# rxe's own management QP does not survive a failed allocation.
new_rxe() {
	rdma link del rxe0
	rdma link add rxe0 type rxe netdev eth0
}
# Only allocations below functions of the module.
below_us() {
	local start size
	start=$(</sys/module/rdmastream/sections/.text)
	size=$(size -A "$MODULE" | awk '$1 == ".text" { print $2 }')
	put "require-start=$start" "require-end=$(printf '%#x' $((start + size)))"
}

# ---- a life: connections, rings, a link that is lost, TCP again, what rsctl asks for, a
# namespace that comes and goes ----

# Any call may return an error; byte counts must be correct.
told() {	# STATUS
	[ "$1" = 0 ] && return
	[ "$1" = 1 ] && grep -qE '^(socket|bind|listen|connect|accept|epoll_ctl)' "$tmp/out" && return
	honest <"$tmp/out" || { cat "$tmp/out"; return 1; }
}
over_or_on_ring() { ! kill -0 "$1" 2>/dev/null || on_ring; }
shape=(-C 2 -n 100K -w 3000 --hold-at 50K)	# of its first stream
life() {
	local pid what
	rm -f "$tmp/go" "$tmp/go.held"
	rsctl drain off >/dev/null
	rs_stream -b -k rds4 -l "$ADDR4_0" "${shape[@]}" -t 60 --hold "$tmp/go" \
		>"$tmp/out" 2>&1 &
	pid=$!
	# the failed allocation may be needed for this
	wait_for 3 over_or_on_ring $pid
	for what in links peers sockets devices stats; do rsctl $what; done >/dev/null 2>&1
	ip netns add site && ip netns del site
	new_rxe
	touch "$tmp/go"
	wait $pid
	told $? || return
	rs_stream -b -k inet -l "$ADDR4_0" -n 60K -W zerocopy -R splice -t 60 >"$tmp/out" 2>&1
	told $?
}

# ---- one allocation after the other ----

declare -A counted=([$inject]=0 [$pages]=0)

# A fault attribute counts its opportunities; each one that "interval" divides fails.  So the
# interval is the count so far plus the number of allocations that should pass.
nth() {		# KNOB N
	echo $((counted[$1] + $2)) >"$1/interval"
	echo 1 >"$1/times"
	echo 100 >"$1/probability"
}
# Return: whether an allocation has failed.
off() {		# KNOB N
	echo 0 >"$1/probability"
	[ "$(<"$1/times")" = 0 ] || return
	# it does not count while every allocation would fail
	[ $((counted[$1] + $2)) = 1 ] || counted[$1]=$((counted[$1] + $2))
}
