#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=2 kernels=6.12,6.1,debug timeout=400
# 64 KiB to 64 MiB in both directions at the same time.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"

load || bail "cannot load the module"
use tcp
for mib in 0 16 64; do
	ok "tcp: $mib MiB and 64 KiB each way" \
		carried tcp $((mib * 1024 * 1024 + 65536)) inet inet -t 100 -w 256K -r 256K
done
ok "a link comes up" want_link
for mib in 1 16 64; do
	ok "ring: $mib MiB and 64 KiB each way" \
		carried ring $((mib * 1024 * 1024 + 65536)) inet inet -t 100 -w 256K -r 256K
done
done_testing
