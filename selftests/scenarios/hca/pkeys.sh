#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Partitions of an InfiniBand subnet: links need one that both hosts are in.  Run by ../hca.sh with
# the profile "ib".
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=selftests/scenarios/ib-lib.sh
. "$(dirname "$0")/../ib-lib.sh"

own=10.79.0

# links that break should end soon
load 14 2000 || bail "cannot load the module"
use ring
set_net link_flap_decay_ms=100 cm_timeout_ms=1500 ring_idle_ms=600000

begin_over_eth
comes "the default partition"
sm hca0 pkeys 0x7fff 0x8001
sm hca1 pkeys 0x7fff 0x8002
ok "no common partition: the link is lost" wait_for 20 no_links
hurry
ok "no common partition: the streams go on" goes_on tcp-tx-bytes
sleep 3
ok "no common partition: there is no link" no_links
sm hca1 pkeys 0xffff 0x8002
comes "one end is a full member"
end_over_eth "partitions change"

sm hca1 pkeys 0xffff 0x8001
for i in 0 1; do
	on $i ip link add link ib0 name ib0.8001 type ipoib pkey 0x8001
	add_addr $i $own ib0.8001
done
end_links
ADDR4_1=$own.2
ok "another partition: a link comes up" want_link
ok "another partition: the link is in it" link $own.1
ok "another partition: data on rings" carried ring 300000 inet inet
# its queue pair has the index
had=$(ids)
sm hca1 pkeys 0x8001 0xffff
ok "another order of P_Keys: the link is lost" wait_for 30 eval '[ "$(ids)" != "$had" ]'
ok "another order of P_Keys: a link comes up" want_link
ok "another order of P_Keys: data on rings" carried ring 300000 inet inet

# A namespace with an interface in the same partition has the same port, P_Key and GID.
on 0 ip netns add c1
on 0 ip link add link ib0 name ib-c1 type ipoib
on 0 ip link set ib-c1 netns c1
ip -n c1 addr add 10.77.0.11/24 dev ib-c1
ip -n c1 link set ib-c1 up
in_c1() { nsenter --net=/run/netns/c1 "$@"; }
in_c1 sysctl -q -w net.rdmastream.ring_mode=1
begin_in_c1() {
	hold=$(fresh c1)
	on_bg 1 rs_stream -s -k inet -p 6500 -n 1M --until "$hold" --pace 50 -t 100 >"$tmp/server"
	server=$!
	in_c1 rs_stream -c 10.77.0.2 -k inet -p 6500 --wait -n 1M --until "$hold" --pace 50 -t 100 >"$tmp/client" &
	client=$!
}
link_in_c1() { in_c1 rsctl -j links | jq -e 'any(.[]; .state == "up" and (.local | tostring | contains("10.77.0.11")))'; }
begin_in_c1
ok "another namespace: a link comes up" wait_for 30 link_in_c1
in_all touch "$hold"
whole_streams "another namespace"

end_links
for i in 0 1; do
	on $i ip link del ib0.8001
	sm hca$i pkeys 0xffff
done
ip netns del c1
ok "no stream remains" wait_for 40 no_streams
done_testing
