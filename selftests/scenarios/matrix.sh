#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=2 kernels=6.12,6.1,debug timeout=400 rdma=siw
# Both families, all ways to open a socket, all carriers, plain TCP at either end: every byte
# arrives, and the counters show the expected carrier.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"

size=$((1536 * 1024))
load || bail "cannot load the module"

for how in raw tcp ring; do
	use $how
	[ $how != ring ] || ok "a link comes up" want_link
	mark 1
	pairs=0
	for pair in "inet inet" "inet6 inet6" "rds4 rds4" "rds6 rds6" "inet rds4"; do
		# shellcheck disable=SC2086
		ok "$how: server and client $pair" carried $how $size $pair -S $RANDOM
		pairs=$((pairs + 1))
	done
	ok "$how: the other end's counters agree" \
		assert_carrier $how 1 $((pairs * size)) $((pairs * size))
	ok "$how: plain client of inet" carried raw $size inet tcp4
	ok "$how: plain client of rds6" carried raw $size rds6 tcp6
	ok "$how: plain server, client rds4" carried raw $size tcp4 rds4
	ok "$how: plain server, client inet6" carried raw $size tcp6 inet6
done
done_testing
