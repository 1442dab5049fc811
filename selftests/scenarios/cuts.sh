#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=1 kernels=6.12,6.1,debug timeout=1200
# Links are cut 10,000 times under streams whose bytes are all checked, fewer times where
# kernels are slow.  From the environment: CUTS.
# shellcheck source=/dev/null
. "$LAB"

if [ "${SLOW:-1}" != 1 ]; then
	: "${CUTS:=500}"
elif ! grep -qs '^model name.*UML' /proc/cpuinfo; then
	: "${CUTS:=2000}"
fi
CUTS=${CUTS:-10000} SUITE=hca/cuts PROFILES=plain DMA=virt REPORTS=no LIMIT=1100 exec "$(dirname "$0")/hca.sh"
