#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=1 asked=6.12,6.1,debug timeout=1200 seed=1
# Links are cut CUTS times (from the environment) under streams whose bytes are all checked.
# shellcheck source=/dev/null
. "$LAB"

[ "${SLOW:-1}" = 1 ] || : "${CUTS:=200}"
CUTS=${CUTS:-1000} SUITE=hca/cuts PROFILES=plain DMA=virt REPORTS=no LIMIT=${LIMIT:-1100} exec "$(dirname "$0")/hca.sh"
