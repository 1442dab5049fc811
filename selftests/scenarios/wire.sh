#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=2 kernels=6.12,6.1,debug timeout=500
# Peers that violate the protocol, and middleboxes that strip the option.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"

load || bail "cannot load the module"
use tcp

strip() {	# VM MATCH: segments that VM receives lose the option
	on "$1" nft "add table inet strip;
		add chain inet strip in { type filter hook prerouting priority -400; };
		add rule inet strip in $2 reset tcp option 254"
}
unstrip() {
	in_all nft "add table inet strip; delete table inet strip"
}

# $how is the expected carrier; all bytes must be correct.
stripped() {	# NAME VM MATCH how
	local how=$4
	if ! strip "$2" "$3" 2>/dev/null; then
		skip "$1" "nft cannot strip TCP options here"
		return
	fi
	ok "$1" carried "$how" 200000 inet inet
	ok "$1, the server sends first" stream inet inet -n 200000 -t 30 --first server
	unstrip
}

stripped "SYN stripped" 1 "tcp flags & (syn | ack) == syn" raw
stripped "SYN-ACK stripped" 0 "tcp flags & (syn | ack) == syn | ack" raw
stripped "later segments stripped" 1 "tcp flags & syn == 0" tcp

set_net hello_timeout_ms=3000
modprobe -a tun veth
retell "peer" < <(rs_wire ${ONLY:+"$ONLY"} 2>&1)
use prelude
retell "prelude" < <(rs_prelude ${ONLY:+"$ONLY"} 2>&1)
ok "no socket remains" wait_for 40 no_sockets
rsctl stats
ok "the module can be unloaded" wait_for 20 unload_module
done_testing
