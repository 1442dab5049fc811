#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=2 kernels=6.12,6.1,debug timeout=240
# Both families, all doors, all carriers, plain TCP at either end: every byte
# arrives, and the counters say that it travelled as it should.
. "$(dirname "$0")/lib.sh"

size=$((1536 * 1024))
load || bail "cannot load the module"

for how in raw tcp ring; do
	use $how
	[ $how != ring ] || t "a link comes up" want_link
	for pair in "inet inet" "inet6 inet6" "rds4 rds4" "rds6 rds6" "inet rds4"; do
		# shellcheck disable=SC2086
		t "$how: server and client $pair" carried $how $size $pair -S $RANDOM
	done
	t "$how: plain client of inet" carried raw $size inet tcp4
	t "$how: plain client of rds6" carried raw $size rds6 tcp6
	t "$how: plain server, client rds4" carried raw $size tcp4 rds4
	t "$how: plain server, client inet6" carried raw $size tcp6 inet6
done

for how in tcp ring; do
	use $how
	t "$how: epoll" carried $how $size inet inet -e
	t "$how: iovecs" carried $how $size rds4 rds4 -W iov -R iov
	t "$how: sendfile, peek" carried $how $size inet6 inet6 -W sendfile -R peek
	t "$how: splice" carried $how $size rds6 rds6 -W splice -R splice
	t "$how: MSG_WAITALL" carried $how $size inet inet -R waitall -r 300K
	t "$how: the server speaks first" carried $how $size inet inet --first server
	t "$how: the client ends first" carried $how $size inet inet --half-close
	t "$how: slow readers" carried $how $size inet inet --read-delay 1000
	t "$how: tiny chunks" carried $how 20000 inet inet -w 50 -r 40
done
finish
