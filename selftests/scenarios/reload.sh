#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=1 kernels=6.12,6.1,debug timeout=400 append=kmemleak=on
# Loading and unloading; missing devices, numbers in use, open sockets.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"

turns=100 big=24M
[ "$KERNEL" != debug ] || big=4M

reload() {
	local i
	for ((i = 0; i < turns; i++)); do
		insmod "$MODULE" || return
		# every other time with state to clean up
		((i % 2)) || rs_stream -b -k inet -l "$ADDR4_0" -n 64K -t 20 >/dev/null || return
		wait_for 10 rmmod rdmastream || return
	done
}

busy() {
	local pid status=0
	rs_stream -s -k rds4 -t 60 &
	pid=$!
	wait_for 5 listens 0 7100
	! rmmod rdmastream 2>/dev/null || status=1
	kill $pid
	wait $pid
	[ -d /sys/module/rdmastream ] && [ $status = 0 ]
}

taken() {	# 10 is AF_INET6
	! insmod "$MODULE" family=10 && [ ! -d /sys/module/rdmastream ] &&
		dmesg | tail -n 20 | grep rdmastream
}

reaches() {	# the family of a socket that "family=$1" made
	insmod "$MODULE" family="$1" &&
		python3 -c "import socket; socket.socket($1, socket.SOCK_STREAM, 0)" &&
		rmmod rdmastream
}

self() {	# OPTION...
	rs_stream -b -k inet -n 1M -t 30 "$@"
}

no_device() {
	rdma link del rxe0
	self -l "$ADDR4_0" && self -l "$ADDR6_0" -k inet6
	local status=$?
	rdma link add rxe0 type rxe netdev eth0
	return $status
}

modprobe -a rdma_cm
ok "a family number in use is refused with a message" taken
ok "another family number works" reaches 27
ok "loading and unloading $turns times" reload
insmod "$MODULE" || bail "cannot load the module"
ok "an open socket prevents unloading" busy
ok "without an RDMA device: plain TCP or the tcp carrier" no_device
sysctl -q -w net.rdmastream.ring_mode=1 net.rdmastream.loopback=1
mark 0
ok "connections within the host" self -l "$ADDR4_0" -n "$big"
ok "connections within the host, IPv6" self -l "$ADDR6_0" -k rds6 -n "$big"
ok "connections within the host, loopback" self -l 127.0.0.1
# a link is established meanwhile, or for the next one
by_rdma() { [ "$(grown 0 ring-tx-bytes)" -gt 0 ] || { self -l "$ADDR4_0" -n "$big" && false; }; }
ok "data uses RDMA" wait_for 20 by_rdma
ok "the module can be unloaded" wait_for 20 rmmod rdmastream
if [ "$KERNEL" = debug ]; then
	ok "no memory leaks" kmemleak_check
else
	skip "no memory leaks" "only the debug kernel looks for leaks"
fi
done_testing
