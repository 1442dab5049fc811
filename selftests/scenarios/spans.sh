#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=2 kernels=6.12,6.1,debug timeout=300
# Where no ring is to be had, streams leave their records, and come back when there is one.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"

size=$((5 * 1024 * 1024))
load || bail "cannot load the module"

# All bytes by TCP, and each end has left its records once; further spans are no news.
in_spans() {	# OPTION...
	mark 1
	carried tcp $size "$@" || return
	echo "spans: $(grown 0 spans) and $(grown 1 spans)"
	[ "$(grown 0 spans)" = 1 ] && [ "$(grown 1 spans)" = 1 ]
}

use prelude
ok "epoll" in_spans inet inet -e
ok "iovecs" in_spans rds4 rds4 -W iov -R iov
ok "sendfile, peek" in_spans inet6 inet6 -W sendfile -R peek
ok "splice" in_spans rds6 rds6 -W splice -R splice
ok "zero copy" in_spans inet inet -W zerocopy -R splice
ok "zero copy, epoll" in_spans rds4 rds4 -W zerocopy -e
ok "MSG_WAITALL" in_spans inet inet -R waitall -r 300K
ok "the client ends first" in_spans inet inet --half-close
ok "slow readers" in_spans inet inet --read-delay 1000
ok "large chunks" in_spans rds6 rds6 -w 1M -r 1M
ok "small chunks" in_spans inet inet -w 700 -r 900

behind() {	# NAME
	local n
	for n in 100000 300000 1000000; do
		ok "$1: $n bytes are counted, peeked at and read" rs_behind "$ADDR4_0" $n
	done
}
sysctl -q -w net.core.rmem_max=8388608
set_net loopback=1
behind "behind the end of a span"
set_net loopback=0

# Streams that wait for a link, and get it.
both_spans() { [ "$(grown 0 spans)" -gt 0 ] && [ "$(grown 1 spans)" -gt 0 ]; }
returns() {	# NAME HINDER MEND
	local go
	go=$(fresh go)
	use ring
	set_net prelude=1 ring_mode=2 cm_timeout_ms=1000
	"$2"
	mark 0
	mark 1
	begin_streams -C 4 -t 200 -n 1M --until "$go" --pace 200
	ok "$1: streams leave their records" wait_for 60 both_spans
	"$3"
	ok "$1: they come back to rings" wait_for 60 have_rings
	in_all touch "$go"
	whole_streams "$1"
	ok "$1: no socket is left" wait_for 20 no_sockets
}

drain() { on 1 rsctl drain on; }
undrain() { on 1 rsctl drain off; }
returns "the peer is drained" drain undrain
drain_here() { rsctl drain on; }
undrain_here() { rsctl drain off; }
returns "this host is drained" drain_here undrain_here

# A program may send, and end its stream, before it reads, also when there is a ring again.
again='do:rsctl drain off; timeout 60 bash -c "until rsctl -j links | grep -q state.*up; do sleep 0.1; done"'
all=$((4 * 1024 * 1024))
use ring
set_net loopback=1 ring_mode=2
for steps in "back:200000 LINK" "back:$all LINK" "LINK forth:150000 back:200000" \
	     "LINK forth:350000 back:200000 end"; do
	drain_here
	# shellcheck disable=SC2086
	ok "much is unread: $steps" rs_unread "$ADDR4_0" $all ${steps/%LINK*/} "$again" ${steps/#*LINK/}
done

# The streams return to records now and then, because there may be a ring.
use prelude
behind "behind HELLO"
spans_of() {	# BYTES: how often both ends have left their records; each may ten times a second
	local start=$SECONDS n
	mark 0
	rs_stream -b -k inet -l "$ADDR4_0" -n "$1" -t 60 >/dev/null || return
	n=$(grown 0 spans)
	echo "$n times in $((SECONDS - start)) s"
	[ "$n" -gt 2 ] && [ "$n" -lt $((20 * (SECONDS - start + 2))) ]
}
ok "they return rarely, although there is a link" spans_of 64M
set_net loopback=0
ok "no socket is left" wait_for 20 no_sockets
done_testing
