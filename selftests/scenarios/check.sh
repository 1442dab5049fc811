#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=2 kernels=6.12,6.1,debug timeout=500
# "rsctl check" on setups with one fault each: it reports the right cause, in the step that
# fails, and nothing else.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=selftests/scenarios/rdma-ports.sh
. "$(dirname "$0")/rdma-ports.sh"

# a link whose packets are lost should end soon
load 14 2000 || bail "cannot load the module"
use ring

port=7000
server=

serve() {	# the far end, anew: a listener keeps what was set when it began
	[ -z "$server" ] || kill "$server" 2>/dev/null
	wait "$server" 2>/dev/null
	port=$((port + 1))
	on_bg 1 "exec rsctl check listen $port"
	server=$!
	wait_for 20 listens 1 $port
}

check() {	# STATUS [probe]: it ends so, what it said is in $tmp/check
	local want=$1 status=0
	shift
	rsctl -j check "${to:-$ADDR4_1}" "${at:-$port}" "$@" >"$tmp/check" || status=$?
	jq -c '.[]' "$tmp/check"
	[ $status = "$want" ]
}

# Only the last step fails, it is STEP, and the reason is REASON.
blames() {	# STEP REASON [probe]
	check 4 "${@:3}" &&
		jq -e --arg step "$1" --arg reason "$2" '
			(.[-1] | .step == $step and .reason == $reason and (.ok | not) and
				(.cause | length > 0) and (.remedy | length > 0)) and
			all(.[:-1][]; .ok)' "$tmp/check"
}

ends_with() {	# STEP: all is well, and this was measured last
	jq -e --arg step "$1" 'all(.[]; .ok) and (.[-1] | .step == $step and .value > 0)' "$tmp/check"
}

no_links() { ! in_all rsctl -j links | grep -q '"id"'; }
fresh() {	# no link is left, and none must wait
	in_all rsctl drain on && in_all rsctl drain off && wait_for 20 no_links
}

filter() {	# VM RULE...: what VM receives
	on "$1" nft "add table inet broken;
		add chain inet broken in { type filter hook prerouting priority -400; };
		add rule inet broken in ${*:2}"
}
filter_rdma() { on "$1" nft "$(rdma_rules broken "${@:2}")"; }	# VM [MATCH...] VERDICT
mend() { in_all nft "add table inet broken; delete table inet broken"; }

# ---- nothing is wrong ----

serve
ok "all steps pass" check 0
ok "the last step is the round trip of the link" ends_with rtt
ok "all steps pass with probe" check 0 probe
ok "with probe, the last step is to receive" ends_with receive
to=$ADDR6_1 ok "all steps pass with IPv6" check 0 probe
to="[$ADDR6_1]" ok "all steps pass to an IPv6 address in brackets" check 0
ok "text output" rsctl check "$ADDR4_1" $port

# ---- rings that are wanted late ----

on 1 rsctl set ring_mode 2
on 1 rsctl set ring_threshold 1M
ok "large ring_threshold on the other host" check 0 probe
on 1 rsctl set ring_mode 1
rsctl set ring_mode 2
rsctl set ring_threshold 2M
ok "large ring_threshold on this host" check 0 probe
rsctl set ring_mode 1

# ---- this host ----

ok "start a drain" rsctl drain on
ok "this host is drained" blames settings drained
rsctl drain off
ok "switch negotiation off" rsctl set negotiate 0
ok "negotiation is off" blames settings off
rsctl set negotiate 1
ok "lower the memory limit" rsctl set rmb_max 0
ok "no ring fits below the limit" blames memory rmb-limit
rsctl set rmb_max 64M
ip netns add apart
ip -n apart link set lo up
usable_apart() { rsctl -N apart -j devices | jq -e "any(.[]; .usable)"; }
ok "another namespace has no usable device" eval "! usable_apart"
rsctl -N apart -j check "$ADDR4_1" $port >"$tmp/check"
ok "another namespace has no address of a device" jq -e '.[-1] | .step == "device" and .reason == "no-address"' "$tmp/check"
ip netns del apart

# ---- on the way ----

to=10.77.0.99 ok "nobody has the address" blames connect unreachable
at=1 ok "nothing listens" blames connect refused
filter 1 "tcp option 254 exists drop" 2>"$tmp/err" && have_option=1
if [ -n "${have_option-}" ]; then
	ok "packets with the option are dropped" blames option option-dropped
else
	skip "packets with the option are dropped" "nft knows no TCP option by number here"
fi
mend
if filter 1 "tcp flags & (syn | ack) == syn reset tcp option 254" 2>/dev/null; then
	ok "the option is stripped on the way there" blames option option-lost-there probe
	ok "the option is stripped: without probe, the cause is one of several" blames option no-option
	mend
	filter 0 "tcp flags & (syn | ack) == syn | ack reset tcp option 254"
	ok "the option is stripped on the way back" blames option option-lost-back probe
	mend
else
	skip "the option is stripped" "nft cannot strip TCP options here"
fi
ok "no link remains" fresh
filter_rdma 1 drop
ok "RDMA is filtered" blames link rdma-unreachable
mend
ok "no link remains" fresh
filter_rdma 1 meta length gt 700 drop
ok "large RDMA packets are lost" blames load mtu probe
mend

# ---- the other host ----

ok "no link remains" fresh
on 1 rsctl drain on
ok "the other host is drained" blames link peer-drained
on 1 rsctl drain off
on 1 rsctl set rmb_max 0
ok "no ring fits on the other host" blames rings rmb-limit-there probe
on 1 rsctl set rmb_max 64M
on 1 rsctl set negotiate 0
serve
ok "negotiation is off on the other host" blames option off-there probe
on 1 rsctl set negotiate 1
on 1 rdma link del rxe0
serve
ok "no device on the other host" blames option no-device-there probe
on 1 rdma link add rxe0 type rxe netdev eth0
rdma link del rxe0
ok "no device on this host" blames device no-device
rdma link add rxe0 type rxe netdev eth0
kill "$server"
wait "$server" 2>/dev/null
ok "no socket remains" wait_for 40 no_sockets
ok "no module on the other host" wait_for 20 on 1 rmmod rdmastream
server=
serve
ok "no module on the other host" blames option no-module-there probe
ok "no module on the other host: without probe, the cause is one of several" blames option no-option
kill "$server"
wait "$server" 2>/dev/null
no_sockets_here() { ! rsctl -j sockets | grep -q mode; }
ok "no socket remains on this host" wait_for 40 no_sockets_here
ok "the module can be unloaded" wait_for 20 rmmod rdmastream
rsctl check "$ADDR4_1" $port 2>"$tmp/err"
ok "no module on this host" test $? = 3 -a "$(wc -l <"$tmp/err")" = 1
done_testing
