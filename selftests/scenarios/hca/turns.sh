#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Streams of a link take turns.  Programs that own their sockets for long lose theirs, so others on
# the link do not wait for them, but for what they have sent.  Run by ../hca.sh.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/../lib.sh"

load || bail "cannot load the module"
use ring
# the next sweep would end all turns, too
set_net loopback=1 link_probe_ms=60000 link_stall_ms=0
hurry
ok "a stream sends while 400 others own their sockets" rs_turns "$ADDR4_0" 400 15
set_net link_probe_ms=500
ok "no stream remains" wait_for 40 no_streams
done_testing
