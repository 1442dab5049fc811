#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Two hosts with two devices each, on separate networks with slow wires: links add up.  Streams are
# spread over both devices, leave one that is lost, and use it again when it is back.  Run by
# ../hca.sh.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/../lib.sh"

params=/sys/module/rs_hca/parameters
rate=4000000

load || bail "cannot load the module"
use ring
set_net link_flap_decay_ms=100 ring_idle_ms=600000

devices() {	# add|del
	local i
	for i in 0 1; do
		if [ "$1" = add ]; then
			on $i rdma link add "hca1$i" type rs_hca netdev eth1
		else
			on $i rdma link del "hca1$i"
		fi || return
	done
}
second() {
	local i
	on 0 ip link add eth1 type veth peer name eth1 netns h1 || return
	for i in 0 1; do
		on $i ip addr add 10.78.0.$((i + 1))/24 dev eth1 && on $i ip link set eth1 up || return
	done
	devices add
}
# Bytes that a host has received by each device, "hca1 N" lines.
bytes() {	# HOST
	on "$1" rsctl -j links | jq -r 'group_by(.device)[] | "\(.[0].device) \(map(.rx_bytes) | add)"'
}
devs() { on "$1" rsctl -j links | jq -r '.[] | select(.state == "up") | .device' | sort -u | wc -l; }
both_up() { [ "$(devs 0)" = 2 ] && [ "$(devs 1)" = 2 ]; }
rings() {	# HOST: rings on each link, in the direction that is used
	on "$1" rsctl -j links | jq -r '.[] | select(.rx_rings > 0) | .rx_rings' | sort -n | xargs
}
even() { [ "$(rings 0)" = "4 4" ] && [ "$(rings 1)" = "4 4" ]; }

# Streams to host 1 until "go"; what it received in ten seconds, by device, in $tmp/rates.
begin_load() {	# STREAMS
	hold=$(fresh go)
	begin_streams -C "$1" -n 1M --until "$hold" -t 500
}
end_load() {	# NAME
	in_all touch "$hold"
	whole_streams "$1"
}
measure() {
	bytes 1 >"$tmp/before"
	sleep 10
	bytes 1 | awk 'NR == FNR { had[$1] = $2; next } { print $1, $2 - had[$1] }' "$tmp/before" - |
		tee "$tmp/rates"
}
total() { awk '{ n += $2 } END { print n }' "$tmp/rates"; }

echo $rate >$params/rate
ok "one device: a link" want_link
begin_load 8
ok "one device: 8 rings" wait_for 20 eval '[ "$(rings 1)" = 8 ]'
measure | diag
one=$(total)
end_load "one device"

ok "a second device for each" second
begin_load 8
ok "two devices: links on both" wait_for 20 both_up
ok "two devices: rings are spread" wait_for 30 even
diag "rings: $(rings 0), $(rings 1)"
measure | diag
ok "two devices: at least 1.7 times as many bytes" test $((10 * $(total))) -ge $((17 * one))
ok "two devices: bytes within 10% of each other" awk '
	{ n[NR] = $2 }
	END { exit !(NR == 2 && n[1] > 0.9 * n[2] && n[2] > 0.9 * n[1]) }' "$tmp/rates"
ok "a device is lost" devices del
ok "a device is lost: its streams go on by the other one" wait_for 30 eval '[ "$(rings 1)" = 8 ]'
ok "the device is back" devices add
ok "the device is back: it gets its share" wait_for 60 eval 'both_up && even'
in_all rsctl links | diag
end_load "two devices"
on 0 ip link del eth1

# Another link is of use if one has two rings, although others have one.  The path to the device
# that is gone is tried only if the other one has all its links.
in_all rsctl drain on >/dev/null
set_net links_per_path=3
hurry
begin_load 4
ok "four streams share three links" wait_for 30 eval '[ "$(rings 1)" = "1 1 2" ]'
set_net links_per_path=4
ok "four streams get four links" wait_for 60 eval '[ "$(rings 1)" = "1 1 1 1" ]'
in_all rsctl links | diag
end_load "four links"
set_net links_per_path=1
echo 0 >$params/rate
ok "no stream remains" wait_for 40 no_streams
done_testing
