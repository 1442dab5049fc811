#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# One link takes long to be set up, because its device is slow or memory is short.  rdma_cm has
# one worker for all, so another link must not wait for it.  Run by ../hca.sh.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/../lib.sh"

params=/sys/module/rs_hca/parameters
roles=''

load || bail "cannot load the module"
use ring
# as long as the slow device needs, and the other end has to wait
set_net loopback=1 cm_timeout_ms=120000

links() { on "$1" rsctl -j links | jq -r ".[] | select($2) | .id"; }	# VM CONDITION
in_setup() { [ -n "$(links "$1" "(.state == \"connecting\") and .device == \"hca$1\"")" ]; }
role() { on "$1" rsctl -j links | jq -r '.[] | select(.state == "connecting") | if .active then "active" else "passive" end'; }
itself() {	# VM: a stream with itself, until "go"
	local name=ADDR4_$1
	on_bg "$1" rs_stream -b -k inet -l "${!name}" -n 100K -t 150 --hold-at 50K --hold "$tmp/go" >/dev/null
	own=$!
}

no_links() { [ -z "$(links 0 true)$(links 1 true)" ]; }
quick() {
	echo 0 >$params/slow_ms
	echo >$params/fault_dev
}
begin() {	# HOST MS: a link that takes this long there
	in_all rsctl drain on >/dev/null
	ok "hca$1 is slow: no link" wait_for 20 no_links
	hurry
	echo -n "hca$1" >$params/fault_dev
	echo "$2" >$params/slow_ms
	begin_streams -C 1 -n 100K -t 150 --hold-at 50K --hold "$tmp/go"
	ok "hca$1 is slow: a link is being set up" wait_for 10 in_setup "$1"
}

# the slow device needs so long for each of two queues; iWARP gives an attempt 10 s (MPA)
case $(<$params/profile) in
siw|*-iwarp)	queue_ms=4000 ;;
*)		queue_ms=15000 ;;
esac
for slow in 0 1; do
	other=$((1 - slow))
	begin $slow $queue_ms
	roles+=" $(role $slow)"
	diag "its end there is $(role $slow)"
	itself $other
	ok "hca$slow is slow: another link comes up" wait_for 25 has_link $other
	ok "hca$slow is slow: the first one is still being set up" in_setup $slow
	ok "hca$slow is slow: the first one comes up" wait_for 60 has_link $slow
	quick
	in_all touch "$tmp/go"
	whole_streams "hca$slow is slow"
	ok "hca$slow is slow: the other's stream is complete" wait $own
	rm -f "$tmp"/go*
done
ok "both roles were slow" test "$(printf '%s\n' $roles | sort -u | wc -l)" = 2

# It ends meanwhile, by this host or the other.
for slow in 0 1; do
	for host in 0 1; do
		begin $slow 4000
		on $host rsctl drain on >/dev/null
		# perhaps with the second attempt, of 8 s, to which the drained host says why
		ok "hca$slow is slow, host $host is drained: the link ends" wait_for 60 no_links
		quick
		on $host rsctl drain off >/dev/null
		ok "hca$slow is slow, host $host is not drained any more: a link comes up" wait_for 30 has_link $slow
		in_all touch "$tmp/go"
		whole_streams "hca$slow is slow, host $host is drained"
		rm -f "$tmp"/go*
	done
done

# A drained host refuses.  rdma_cm flushes the queues before it says so.
path() {	# VM FILTER: of its paths to the other
	on "$1" rsctl -j peers | jq -e "any(.[]; (.self | not) and .active and ($2))"
}
set_net cm_timeout_ms=3000
asks=1
[ -z "$(links 0 '.active and (.remote | startswith("10.77.0.2:"))')" ] || asks=0
in_all rsctl drain on >/dev/null
ok "no link is left" wait_for 20 no_links
hurry
on $((1 - asks)) rsctl drain on >/dev/null
begin_streams -C 1 -n 100K -t 150 --hold-at 50K --hold "$tmp/go"
ok "the other host is drained: it refuses" wait_for 20 path $asks 'any(.paths[]; .refused > 0)'
ok "the other host is drained: this is the reason" path $asks '.end_text == "peer is drained"'
ok "the other host is drained: no fault of the path" path $asks 'all(.paths[]; .fails == 0)'
diag "$(on $asks rsctl -j peers)"
on $((1 - asks)) rsctl drain off >/dev/null
ok "the other host is not drained any more: a link comes up" wait_for 30 has_link 0
in_all touch "$tmp/go"
whole_streams "the other host is drained"
rm -f "$tmp"/go*
set_net loopback=0
ok "no stream remains" wait_for 40 no_streams
done_testing
