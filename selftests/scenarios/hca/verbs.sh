#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Each call of each verb fails once, at either end, over the life of a link: it is made,
# streams get rings and are checked, the link is lost, made again, and closed.  Run by
# ../hca.sh.  From the environment: KINDS (of faults), EVERY (the first so many calls
# each, of the later ones one of so many).
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/../lib.sh"

params=/sys/module/rs_hca/parameters
: "${KINDS:=alloc_pd create_cq create_qp modify_qp alloc_mr reg_mr map post_recv post_send}"
: "${EVERY:=12}"

load || bail "cannot load the module"
use ring
set_net link_flap_decay_ms=100 ring_size=16384 ring_threshold=4096 ring_idle_ms=600000

no_link() { ! in_all rsctl -j links | grep -q '"state":"up"'; }
fails() { echo "$2" >"$params/fault_$1_at"; }	# KIND N
faults() { value "fault-$2" < <(sed -n "s/^hca$1 //p" $params/counts); }	# HOST KIND

# Streams until there is a link, or the call has failed.  Both are no reason to fail for a program.
streams() {	# OPTION...
	local end=$((SECONDS + 20))
	while [ $SECONDS -lt $end ]; do
		stream inet inet "$@" -t 60 || return
		! has_link 0 && [ "$(faults "$host" "$kind")" = "$had" ] || break
		pause 0.1
	done
}
life() {	# within once()
	hurry
	streams -C 3 -n 60K -w 5000 || return
	# lost while the rings are in use
	if [ "$kind" != loss ]; then
		fails loss $((10 + RANDOM % 30))
		stream inet inet -C 2 -n 60K -e -t 60 || return
		fails loss 0
	fi
	streams -n 20K
}
once() {	# HOST KIND N
	local host=$1 kind=$2 had
	in_all rsctl drain on >/dev/null
	wait_for 20 no_link || { echo "the link stays"; return 1; }
	echo -n "hca$1" >$params/fault_dev
	had=$(faults "$1" "$kind")
	fails "$kind" "$3"
	life
	local status=$?
	fails "$kind" 0
	fails loss 0
	echo -n '' >$params/fault_dev
	[ $status = 0 ] || { echo "call $3 of $kind of host $1"; return 1; }
	[ "$(faults "$1" "$kind")" -gt "$had" ] || return 2
}
each() {	# HOST KIND
	local n=1 times=0 status
	while :; do
		once "$1" "$2" $n
		status=$?
		[ $status != 1 ] || return 1
		[ $status != 2 ] || break
		times=$((times + 1))
		n=$((n < EVERY ? n + 1 : n + n / EVERY))
	done
	echo "host $1: $2: $times failed, of $((n - 1)) calls" >>"$tmp/told"
	# those that nobody makes are no test
	[ $times -gt 0 ]
}

ok "a link comes up" want_link
mark 0
mark 1
for kind in $KINDS; do
	# without addresses of the device's own nothing is mapped
	[ "$kind" != map ] || [ "$(<$params/dma)" != virt ] || continue
	for end in 0 1; do
		ok "$kind fails once at each call, host $end" each $end "$kind"
	done
done
diag <"$tmp/told"
# but for what hca.sh has to keep the links
ok "no stream remains" wait_for 40 no_streams
ok "no connection was reset" test $(($(grown 0 resets) + $(grown 1 resets))) = 0
hurry
ok "a link comes up again" want_link
ok "the new link carries data" carried ring 300000 inet inet
done_testing
