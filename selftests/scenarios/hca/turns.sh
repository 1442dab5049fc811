#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Streams of a link take turns.  Programs that own their sockets for long lose theirs, so others on
# the link wait for what they have sent, but not for them.  Run by ../hca.sh.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/../lib.sh"

load || bail "cannot load the module"
use ring
# a sweep would end all turns, too
set_net link_probe_ms=60000 link_stall_ms=0
hurry
on_bg 1 rs_turns serve 7900 >"$tmp/serve" 2>&1
server=$!
ok "somebody reads" wait_for 20 listens 1 7900
ok "a stream sends while 400 others own their sockets" rs_turns send "$ADDR4_1" 7900 400 15
kill $server
set_net link_probe_ms=500
ok "no stream remains" wait_for 40 no_streams
done_testing
