#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=2 kernels=6.12,6.1,debug timeout=1500
# 1 GiB in both directions at once, by RDMA.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"

load || bail "cannot load the module"
ok "a link comes up" want_link
ok "1 GiB each way on rings" \
	carried ring $((1024 * 1024 * 1024)) inet inet -t 1400 -w 256K -r 256K
done_testing
