#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# A device resets: it executes nothing any more, and for a while nobody flushes what was posted.  No
# byte is lost, the link ends, and the device can be removed.  It resets again at the end, so
# ../hca.sh, which runs this last, unloads the module while the device is dead.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/../lib.sh"

params=/sys/module/rs_hca/parameters

# links that break should end soon
load 14 2000 || bail "cannot load the module"
use ring
set_net link_flap_decay_ms=100 ring_idle_ms=600000

has_reset() { grep -q '^hca0 fault-reset 1$' $params/counts; }
links() { rsctl -j links | jq length; }	# of host 0, whatever their state
no_link_left() { [ "$(links)" = 0 ]; }
by_tcp() { [ "$(grown 0 "tcp-$1-bytes")" -gt 100000 ]; }	# tx|rx, since the loss

removed() {	# even if the removal never ends
	rdma link del hca0 &
	wait_for 20 gone $!
}
begin() {	# NAME MS: after which the driver flushes
	echo "$2" >$params/reset_flush_ms
	hold=$(fresh hold)
	begin_streams -C 2 -n 1M --until "$hold" --pace 50 -t 250
	hurry
	ok "$1: streams have rings" wait_for 30 have_rings
	echo -n hca0 >$params/fault_dev
	echo 50 >$params/fault_reset_at
	ok "$1: the device is dead" wait_for 20 has_reset
	echo 0 >$params/fault_reset_at
	echo >$params/fault_dev
	ok "$1: the link is lost at both ends" wait_for 20 no_links
	mark 0
}
end() {	# NAME
	ok "$1: what the device was to send goes on by TCP" wait_for 40 by_tcp tx
	in_all touch "$hold"
	whole_streams "$1"
	ok "$1: nothing is left of the link" wait_for 20 no_link_left
}

begin "reset" 20000
ok "reset: what the other host sends goes on by TCP" wait_for 10 by_tcp rx
# its memory may be read until the flush
ok "reset: the link waits for the flush" test "$(links)" -gt 0
diag "$(rsctl links)"
ok "reset: so does what the device was to send" eval '! by_tcp tx'
end "reset"
ok "reset: the device can be removed" removed
ok "reset: it comes back" rdma link add hca0 type rs_hca netdev eth0
hurry
ok "reset: a link comes up" want_link
ok "reset: data on rings" carried ring 300000 inet inet

begin "another reset" 1000
end "another reset"
ok "no stream remains" wait_for 40 no_streams
done_testing
