#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=1 kernels=6.12,6.1,debug timeout=300 seed=1
# A peer that owes an answer for ever, which takes an hour of virtual time.  From the environment:
# ONLY (the cases whose names match).
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"

programs=$(realpath "$(dirname "$0")/../programs")

load || bail "cannot load the module"
# rings are taken back by the cases only
set_net hello_timeout_ms=3000 link_flap_decay_ms=100 ring_idle_ms=86400000
modprobe veth

use ring
retell "overdue" < <(python3 "$programs/rs_overdue.py" ${ONLY:+"$ONLY"} 2>&1)
ok "no socket remains" wait_for 20 no_sockets
rsctl stats
ok "the module can be unloaded" wait_for 20 unload_module
done_testing
