#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=1 stock=6.12 timeout=600 cpus=2
# Programs that poll links instead of sleeping, with a CPU for each, over rs_hca.
# shellcheck source=/dev/null
. "$LAB"

SUITE=hca/busy PROFILES=plain DMA=virt REPORTS=no exec "$(dirname "$0")/hca.sh"
