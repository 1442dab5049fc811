#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=2 kernels=6.12,6.1,debug timeout=400
# Many concurrent connections, and many short ones.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"

conns=200 each=65536 connects=200
[ "$KERNEL" != debug ] || conns=50 connects=50
load || bail "cannot load the module"

many() {	# raw|tcp|ring [OPTION...]
	local how=$1
	shift
	mark 0
	stream inet inet -C $conns -n $each -t 100 "$@" &&
		assert_carrier "$how" 0 $((conns * each)) $((conns * each))
}

storm() {	# SERVER_KIND CLIENT_KIND MODE
	local pid status=0 port=$((7000 + RANDOM % 20000))
	on_bg 1 rs_storm -s -k "$1" -p $port -n $connects -t 60
	pid=$!
	wait_for 10 listens 1 $port || status=1
	rs_storm -c "$(addr "$1" 1)" -k "$2" -p $port -n $connects -t 60 -m "$3" || status=1
	wait $pid || status=1
	return $status
}

ok "$connects connections from plain TCP clients, one byte each" storm inet tcp4 byte
ok "$connects connections to a plain TCP server, one byte each" storm tcp4 inet byte
for how in tcp ring; do
	use $how
	[ $how != ring ] || ok "a link comes up" want_link
	ok "$how: $conns concurrent connections, epoll" many $how -e
	[ "$KERNEL" = debug ] || ok "$how: $conns connections at once, threads" many $how
	for mode in close byte rst unread; do
		ok "$how: $connects connections, $mode" storm inet rds4 $mode
	done
	ok "$how: no socket remains" wait_for 20 no_sockets
done
ok "the module can be unloaded" wait_for 20 unload_module
done_testing
