#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Each call of each verb fails once, at either end, over the life of a link: it is made,
# streams get rings and are checked, the link is lost, made again, and closed.  Whatever
# fails, the streams have rings soon, and again when they have lost them.  Run by
# ../hca.sh.  From the environment: KINDS (of faults), EVERY (how many calls of each
# from the first on, and then one in that many; 0: the first, the second and a later one).
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/../lib.sh"

params=/sys/module/rs_hca/parameters
: "${KINDS:=alloc_pd create_cq create_qp modify_qp alloc_mr reg_mr map post_recv post_send}"
: "${EVERY:=12}"

load || bail "cannot load the module"
use ring
set_net link_flap_decay_ms=100 ring_size=16384 ring_threshold=4096 ring_idle_ms=600000

# Processes are most of what a life costs, so these start few.  Host 0 is this one.
no_link() { ! rsctl -j links | grep -q '"state":"up"'; }
no_links() { no_link && ! has_link 1; }
fails() { echo "$2" >"$params/fault_$1_at"; }	# KIND N
faulty() {	# HOST KIND: sets faults
	local device what n
	while read -r device what n; do
		[ "$device $what" != "hca$1 fault-$2" ] || faults=$n
	done <$params/counts
}
more_faults() { faulty "$1" "$2" && [ "$faults" -gt "$3" ]; }	# HOST KIND BEFORE

# Has a stream a ring each way, by a link other than this?  Sets link.
ring='\{"carrier":"ring",[^{}]*"link":([0-9]+),[^{}]*"ring_size":[1-9]'
have_others() {	# LINK
	local sockets each
	sockets=$(rsctl -j sockets) || return
	while read -r each; do
		[[ $each =~ \"rx\":$ring && $each =~ \"tx\":$ring ]] || continue
		link=${BASH_REMATCH[1]}
		[ "$link" = "$1" ] || return 0
	done <<<"${sockets//'{"local"'/$'\n'}"
	return 1
}

# The streams pause until they have rings, use them, lose them, and have others.
lose_rings() {	# HOST KIND
	local link faults
	wait_for 20 have_others 0 || { echo "no rings"; return 1; }
	[ "$2" != loss ] || return 0
	faulty "$1" loss
	fails loss $((10 + RANDOM % 30))
	: >"$go"
	wait_for 20 more_faults "$1" loss "$faults" || { echo "the link is not lost"; return 1; }
	hurry
	wait_for 20 have_others "$link" || { echo "no rings after the loss"; return 1; }
}
life() {	# HOST KIND
	local go=$tmp/go.$SRANDOM status=0
	hurry
	begin_streams -C 2 -n 60K -w 5000 --hold-at 8K --hold "$go" --until "$go.end" --pace 200 -t 60
	lose_rings "$1" "$2" || status=1
	: >"$go"
	: >"$go.end"
	wait "$client" || status=1
	wait "$server" || status=1
	[ $status = 0 ] || cat "$tmp/client" "$tmp/server"
	return $status
}

# Return: 1 failed, 2 the call was not made
once() {	# HOST KIND N
	local faults had status
	rsctl drain on >/dev/null
	wait_for 20 no_links || { echo "the link stays"; return 1; }
	echo -n "hca$1" >$params/fault_dev
	faulty "$1" "$2"
	had=$faults
	fails "$2" "$3"
	life "$1" "$2"
	status=$?
	fails "$2" 0
	fails loss 0
	echo -n '' >$params/fault_dev
	[ $status = 0 ] || { echo "call $3 of $2 of host $1"; return 1; }
	more_faults "$1" "$2" "$had" || return 2
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
# Two links are made: of some verbs, the second call is the last.
declare -A few=([alloc_pd]="1 2" [create_cq]="1 2 4" [create_qp]="1 2" [modify_qp]="1 2 7" [alloc_mr]="1 2 4"
	[reg_mr]="1 2 4" [map]="1 2 60" [post_recv]="1 2 520" [post_send]="1 2 24")
some() {	# HOST KIND
	local n
	for n in ${few[$2]}; do
		once "$1" "$2" "$n" || { echo "call $n: status $?, 2: it was not made"; return 1; }
	done
}

ok "a link comes up" want_link
mark 0
mark 1
for kind in $KINDS; do
	# without addresses of the device's own nothing is mapped
	[ "$kind" != map ] || [ "$(<$params/dma)" != virt ] || continue
	for end in 0 1; do
		if [ "$EVERY" = 0 ]; then
			ok "$kind fails at calls ${few[$kind]}, host $end" some $end "$kind"
		else
			ok "$kind fails once at each call, host $end" each $end "$kind"
		fi
	done
done
[ "$EVERY" = 0 ] || diag <"$tmp/told"
# but for what hca.sh has to keep the links
ok "no stream remains" wait_for 40 no_streams
ok "no connection was reset" test $(($(grown 0 resets) + $(grown 1 resets))) = 0
hurry
ok "a link comes up again" want_link
ok "the new link carries data" carried ring 300000 inet inet
done_testing
