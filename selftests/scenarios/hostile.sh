#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=2 kernels=6.12,6.1,debug timeout=900
# A host with its own queue pairs attacks rdma_cm, RDMA and the handshake.  The links and rings
# of honest streams next to it are not affected.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"

load || bail "cannot load the module"
set_net hello_timeout_ms=3000 link_flap_decay_ms=100 ring_idle_ms=900000
modprobe -a tun veth

ok "a link comes up" want_link
hold=$tmp/go
begin_streams -C 3 -n 2M --hold-at 1M --hold "$hold" -t 900
ok "honest streams use the link" wait_for 30 all_on_rings 3
retell "hostile" < <(rs_hostile "$@" 2>&1)
in_all touch "$hold"
whole_streams "honest"
ok "no socket remains" wait_for 20 no_sockets
ok "the module can be unloaded" wait_for 20 unload_module
done_testing
