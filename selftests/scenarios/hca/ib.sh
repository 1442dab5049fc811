#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Links over InfiniBand ports, while the subnet changes: its manager, paths that are not there or not
# right, LIDs, ports.  Run by ../hca.sh with the profile "ib".
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=selftests/scenarios/ib-lib.sh
. "$(dirname "$0")/../ib-lib.sh"

# links that break should end soon
load 14 2000 || bail "cannot load the module"
use ring
set_net link_flap_decay_ms=100 cm_timeout_ms=1500 ring_idle_ms=600000

ok "a link comes up" want_link
ok "it is between InfiniBand interfaces" link "$ADDR4_0"
end_links
ib=$ADDR4_0
begin_over_eth
comes "streams between Ethernet interfaces"
ok "the link is between InfiniBand interfaces" link "$ib"

# ---- the subnet manager, and the administrator ----

stays "another subnet manager" sm sm lid 2
stays "clients register anew" eval 'sm hca0 reregister && sm hca1 reregister'
end_links
comes "by the other subnet manager"
stays "the administrator does not answer" eval 'echo 1 >$params/fault_sa'
fails "the administrator does not answer" "not established in time\|route error"
echo 0 >$params/fault_sa
echo 0x300 >$params/sa_status
fails "there is no path" "route error"
echo 0 >$params/sa_status
echo 0x8055 >$params/sa_pkey
fails "a path in an unknown partition" "cannot send the request"
echo 0 >$params/sa_pkey
comes "paths are right again"

# ---- ports ----

had=$(ids)
# the host that makes links asks for the path to the other
sm hca$((1 - $(maker))) lid 99
ok "another LID: another link comes up" wait_for 20 other "$had"
ok "another LID: it carries data" on_rings
echo 1 >$params/sa_stale
fails "a path to the old LID" "not established in time"
echo 0 >$params/sa_stale
comes "a path to the new LID"
stays "the InfiniBand interface goes down" ip link set ib0 down
ip link set ib0 up
sm hca0 port 0
ok "port down: the link is lost" wait_for 20 no_links
ok "port down: the streams go on" goes_on tcp-tx-bytes
sm hca0 port 1
comes "port up"
end_over_eth "the subnet changes"
ok "no stream remains" wait_for 40 no_streams
done_testing
