#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=2 kernels=6.12,6.1,debug stock=6.12,6.1 timeout=400 rdma=siw
# The ways in which programs send and receive, on the tcp and the ring carrier.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"

size=$((1536 * 1024))
load || bail "cannot load the module"

for how in tcp ring; do
	use $how
	[ $how != ring ] || ok "a link comes up" want_link
	ok "$how: epoll" carried $how $size inet inet -e
	ok "$how: iovecs" carried $how $size rds4 rds4 -W iov -R iov
	ok "$how: sendfile, peek" carried $how $size inet6 inet6 -W sendfile -R peek
	ok "$how: splice" carried $how $size rds6 rds6 -W splice -R splice
	ok "$how: zero copy" carried $how $size inet inet -W zerocopy -R splice
	ok "$how: zero copy, epoll" carried $how $size rds4 rds4 -W zerocopy -e
	ok "$how: MSG_WAITALL" carried $how $size inet inet -R waitall -r 300K
	ok "$how: the server sends first" carried $how $size inet inet --first server
	ok "$how: the client sends first" carried $how $size rds4 rds4 --first client -e
	ok "$how: the client closes first" carried $how $size inet inet --half-close
	ok "$how: slow readers" carried $how $size inet inet --read-delay 1000
	ok "$how: large writes" carried $how $((4 * size)) rds6 rds6 -w 1M -r 1M
done
ok "tiny writes" stream inet inet -n 20000 -w 50 -r 40

# A connection within VM 0 does not send the option, so its listener sees a plain TCP client.
with_itself() {	# KIND ADDRESS
	mark 0
	rs_stream -b -k "$1" -l "$2" -n 64K -t 30 &&
		[ "$(grown 0 reason:loopback)" = 1 ] && [ "$(grown 0 plain-accepts)" = 1 ]
}
ok "connections within a host: plain TCP" with_itself inet "$ADDR4_0"
ok "connections within a host: plain TCP, IPv6" with_itself inet6 "$ADDR6_0"
ok "connections within a host: plain TCP, IPv4 with an IPv6 socket" with_itself inet6 "::ffff:$ADDR4_0"
done_testing
