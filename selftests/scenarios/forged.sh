#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=2 kernels=6.12,6.1,debug timeout=600
# A forged message ends the link: a write with a wrong key, an unknown message, a repeated
# message.  The streams continue over TCP, and every byte is correct.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=selftests/scenarios/survive-lib.sh
. "$(dirname "$0")/survive-lib.sh"

# Repeat until the link has ended.
forge() {	# rs_forge's HOW
	local try
	for try in {1..15}; do
		rs_forge -t 3 "$1" "$ADDR4_1" || return
		[ "$(grown 0 links-lost)" = 0 ] || return 0
	done
	echo "not noticed after $try times"
	return 1
}

for what in busy idle; do
	lose "queue pair in error" $what forge bad-key
	whole "queue pair in error, $what"
	lose "message of no meaning" $what forge bad-message
	whole "message of no meaning, $what"
done
# A repeated message would count bytes that were never sent.
on_bg 1 "exec rs_gather serve 7000"
server=$!
wait_for 20 listens 1 7000
for try in 1 2; do
	ok "message repeated, $try: a link is up" want_link
	remember
	rs_gather turns "$ADDR4_1" 7000 $((5000 / SLOW)) &
	client=$!
	ok "message repeated, $try: the link is lost" forge repeated
	wait $client
	ok "message repeated, $try: all data is correct" test $? = 0
done
kill $server
wait $server 2>/dev/null

ok "the module can be unloaded" wait_for 20 unload_module
done_testing
