#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Streams over devices that fail now and then, by a seed: nothing is lost.  Run by
# ../hca.sh.  From the environment: FAULTS (kind=N..., see Documentation/rs_hca.rst).
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/../lib.sh"

params=/sys/module/rs_hca/parameters
: "${FAULTS:=delay=20 repeat=20 again=20 replace=20 mad=3 loss=100 post_send=300 post_recv=300 map=100 alloc_mr=2 reg_mr=2}"

load || bail "cannot load the module"
use ring
# links that come and go are not to be rare here
set_net link_flap_decay_ms=100

for fault in $FAULTS; do
	kind=${fault%=*} n=${fault#*=}
	hurry
	echo "$n" >"$params/fault_$kind"
	begin_streams -C 4 -n 2M -t 60
	whole_streams "$kind, once in $n"
	echo 0 >"$params/fault_$kind"
done
hurry
set_net ring_size=16384
ok "replace: data that has not been read does not change" rs_late_read hca0 h1 "$ADDR4_1"
set_net ring_size=262144
# but for what hca.sh has to keep the links
ok "no stream remains" wait_for 40 no_streams

again() { rdma link | grep -q hca0 || rdma link add hca0 type rs_hca netdev eth0; }
hurry
echo -n hca0 >$params/fault_dev
echo 300 >$params/fault_remove_at
begin_streams -C 4 -n 8M -t 60
whole_streams "the device goes"
echo 0 >$params/fault_remove_at
echo >$params/fault_dev
ok "the device comes back" wait_for 20 again
done_testing
