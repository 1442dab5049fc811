#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=1 kernels=6.12,6.1,debug timeout=300 seed=1
# Peers make this host send requests to addresses that they name, as many as they can: where these
# may go, and how many there are; or they make many links.  From the environment: ONLY (the cases
# whose names match).
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"

programs=$(realpath "$(dirname "$0")/../programs")

load || bail "cannot load the module"
set_net hello_timeout_ms=3000 link_flap_decay_ms=100 ring_idle_ms=900000
modprobe veth
# without ARP, a device sends all to itself
ip link set eth0 arp on

use ring
retell "named" < <(python3 "$programs/rs_named.py" ${ONLY:+"$ONLY"} 2>&1)
ok "no socket remains" wait_for 20 no_sockets
rsctl stats
ok "the module can be unloaded" wait_for 20 unload_module
done_testing
