#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=1 kernels=6.12,6.1,debug timeout=300
# Sockets in the hands of others than their program: the kernel accepts from a listener, as nfsd
# does; a BPF program sets options of a child before accept(); children go from a listener that
# is closed to another one.
# From the environment: ONLY (kernel bpf delay migrate).
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"

: "${TESTS:=$(dirname "$MODULE").test}"	# with rs_acceptor.ko, built as rs_hca.ko is
: "${ONLY:=kernel bpf delay migrate}"
groups=/sys/fs/cgroup

mountpoint -q $groups || mount -t cgroup2 none $groups || bail "no control groups"
load || bail "cannot load the module"
insmod "$TESTS/rs_acceptor.ko" || bail "cannot load rs_acceptor.ko"
set_net loopback=1
for way in prelude tcp; do
	use $way
	for what in $ONLY; do
		mark 0
		retell "$way, $what" < <(rs_others "$ADDR4_0" "$what" 2>&1)
		[ "$what" = migrate ] ||
			ok "$way, $what: with streams" test "$(grown 0 passive-opens)" -gt 0
	done
done
ok "no socket is left" wait_for 20 no_sockets
ok "rs_acceptor can be unloaded" rmmod rs_acceptor
ok "the module can be unloaded" wait_for 20 unload_module
done_testing
