#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=2 kernels=6.12,6.1,debug timeout=900 rdma=siw
# A peer that violates the rules of rings and links, next to honest streams.  From the environment:
# ONLY (the cases whose names match).
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"

load || bail "cannot load the module"
# The peer breaks the link repeatedly and waits for the next one, so damping is off.
# The honest streams stay open, and always want rings.
set_net hello_timeout_ms=3000 link_flap_decay_ms=100 ring_idle_ms=900000
# with iWARP a program answers the probes of its link, but not while it looks at something else
[ "$RDMA" = rxe ] || set_net link_stall_ms=0
modprobe -a tun veth

# The peer uses the name of VM 1; honest streams run between the two VMs.
ok "a link comes up" want_link
hold=$tmp/go
begin_streams -C 3 -n 2M --hold-at 1M --hold "$hold" -t 900
ok "honest streams use the link" wait_for 30 all_on_rings 3
# over iWARP, by default, what depends on how messages are sent
[ "$RDMA" = rxe ] || [ $# != 0 ] || set -- 'iwarp_|refused|unproven|resume|revoke|done|freed_late'
[ -z "${ONLY-}" ] || set -- "$ONLY"
retell "peer" < <(rs_liar "$@" 2>&1)
in_all touch "$hold"
whole_streams "honest"
ok "a link comes up again" want_link
ok "no socket remains" wait_for 20 no_sockets
rsctl stats
ok "the module can be unloaded" wait_for 20 unload_module
done_testing
