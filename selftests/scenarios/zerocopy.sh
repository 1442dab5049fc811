#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=2 kernels=6.12,6.1,debug timeout=400
# Pages are sent in place.  What is spliced comes from TCP in the pages in which it arrived, and
# from a ring in copies: the counters prove it.  Data that is kept in a pipe does not change when
# the link is lost, when the ring is used again, or when the socket is closed; and it holds up
# nobody.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"

load 14 1500 || bail "cannot load the module"
# rings must not change
set_net ring_idle_ms=600000 ring_size=32768
here=$(dirname "$0")
size=2M bytes=$((2 * 1024 * 1024)) rest=1500000
[ "$KERNEL" != debug ] || size=512K bytes=$((512 * 1024)) rest=500000
more=$((2 * bytes))

# Counts of a VM since its mark.  Small pieces may be copied when sent, and packets without
# pages, such as those of User-Mode Linux's device, when received.
in_place() {	# tcp|ring VM WAY
	growth "$2" | awk -v how="$1" -v vm="$2" -v way="$3" -v bytes="$bytes" \
		-v native="$VM_ROOT" '
		{ n[$1] = $2 }
		END {
			out = n["sent-page-bytes"]; out_copy = n["sent-copy-bytes"]
			in_ = n["spliced-page-bytes"]; in_copy = n["spliced-copy-bytes"]
			printf "VM %d: sent %d and copied %d, spliced %d and copied %d of %d; ring %d %d\n",
				vm, out, out_copy, in_, in_copy, bytes,
				n["ring-tx-bytes"], n["ring-rx-bytes"]
			good = out + out_copy == bytes && in_ + in_copy == bytes
			good = good && out_copy <= (way == "zerocopy" ? 0 : bytes / 100)
			if (how == "ring")
				good = good && !in_ && n["ring-tx-bytes"] == bytes &&
				       n["ring-rx-bytes"] == bytes
			else if (native != "hostfs")	# heads of packets
				good = good && in_copy < bytes / 10
			exit !good
		}'
}

# The same amount again, when the carrier no longer changes.
sent_in_place() {	# tcp|ring WAY
	local go port=$((7000 + RANDOM % 20000)) server client status=0 vm
	go=$(fresh go)
	local way=(-W "$2" -R splice -n "$more" --hold-at "$size" --hold "$go" -t 60)
	on_bg 1 rs_stream -s -k inet -p $port "${way[@]}"
	server=$!
	rs_stream -c "$ADDR4_1" -k inet -p $port --wait "${way[@]}" &
	client=$!
	wait_for 40 test -e "$go.held" && wait_for 40 on 1 test -e "$go.held" || status=1
	for vm in 0 1; do
		mark $vm
	done
	in_all touch "$go"
	wait $server || status=1
	wait $client || status=1
	for vm in 0 1; do
		in_place "$1" $vm "$2" || status=1
	done
	return $status
}

use tcp
for way in sendfile zerocopy; do
	ok "tcp, $way: nothing is copied" sent_in_place tcp $way
done
ok "a link comes up" want_link
for way in sendfile splice zerocopy; do
	ok "ring, $way: only what is spliced is copied" sent_in_place ring $way
done

# ---- the link is lost in the midst ----

carries() { [ "$(grown 0 ring-tx-bytes)" -gt 200000 ] && [ "$(grown 0 ring-rx-bytes)" -gt 200000 ]; }
resumed() { [ $(($(grown 0 resumes) + $(grown 1 resumes))) -gt 0 ]; }
both_lost() { ! has_link 0 && ! has_link 1; }

lost_amid() {	# WAY
	local port=$((7000 + RANDOM % 20000)) enough server client way
	enough=$(fresh enough)
	way=(-W "$1" -R splice -n 3M --until "$enough" -C 4 -t 100)
	ok "$1, lost: a link is up" want_link
	mark 0
	mark 1
	on_bg 1 rs_stream -s -k inet -p $port "${way[@]}" >"$tmp/server"
	server=$!
	rs_stream -c "$ADDR4_1" -k inet -p $port --wait "${way[@]}" >"$tmp/client" &
	client=$!
	ok "$1, lost: rings are used" wait_for 40 carries
	"$here/loss.sh" drop
	ok "$1, lost: streams continue over TCP" wait_for 30 resumed
	"$here/loss.sh" pass
	in_all touch "$enough"
	wait $client
	ok "$1, lost: the client's streams are complete" test $? = 0
	wait $server
	ok "$1, lost: the server's streams are complete" test $? = 0
	grep -h '"ok":false' "$tmp/client" "$tmp/server" | diag
}

set_net ring_size=262144
for way in sendfile zerocopy; do
	lost_amid $way
done

# ---- data that is kept ----

# Data in pipes of VM 0, and more data of the same stream after it.
keep() {	# BYTES REST
	port=$((7000 + RANDOM % 20000)) steps=$(fresh hold)
	ok "kept $1: a link is up" want_link
	mark 0
	on_bg 1 rs_hold -s -p $port -n "$1" -r "$2" -t 100 >/dev/null
	server=$!
	rs_hold -c "$ADDR4_1" -p $port -n "$1" -r "$2" -f "$steps" -t 100 >"$tmp/holder" 2>&1 &
	client=$!
	ok "kept $1: the stream has a ring" wait_for 30 keeper_has_ring
	ok "kept $1: pipes hold data" go_on warm held
	ok "kept $1: it is from the ring" test "$(grown 0 spliced-copy-bytes)" -ge $(($1 / 2))
}
keeper_has_ring() {
	test -e "$steps.warm" &&
		on 0 rsctl -j sockets | jq -e 'any(.[]; .rx.ring_size)' >/dev/null
}
go_on() {	# STEP NEXT
	touch "$steps.go-$1"
	wait_for 30 test -e "$steps.$2"
}
kept() {	# NAME
	ok "$1: the kept data is what was sent" go_on closed checked
	cat "$tmp/holder" | diag
	touch "$steps.go-checked"
	wait $client
	ok "$1: the receiver succeeds" test $? = 0
	wait $server
	ok "$1: the sender succeeds" test $? = 0
}

keep 20000 100000
"$here/loss.sh" drop
ok "kept while lost: the link is lost" wait_for 20 both_lost
ok "kept while lost: the stream continues" go_on held read
"$here/loss.sh" pass
ok "kept while lost: the socket is closed" go_on read closed
ok "kept while lost: no socket remains" wait_for 20 no_sockets
ok "kept while lost: another stream has rings" want_link
ok "kept while lost: another stream uses its rings" carried ring 1000000 inet inet
kept "kept while lost"

# ---- a pipe that somebody else empties ----

# splice() holds the lock of the pipe while it waits for data.
by_two() {	# [rsctl run]: sets took, ms
	local server port=$((7000 + RANDOM % 20000)) bytes=0
	on_bg 1 "$@" rs_splicer -s $port $mib
	server=$!
	wait_for 20 listens 1 $port
	read -r bytes took < <("$@" rs_splicer "$ADDR4_1" $port)
	wait $server && [ "$bytes" = $((mib * 1024 * 1024)) ]
}

mib=16
[ "$SLOW" = 1 ] || mib=2
by_two
ok "two readers, TCP: all data arrives" test $? = 0
tcp=$took
ok "two readers: a link is up" want_link
mark 0
by_two rsctl run
ok "two readers, rings: all data arrives" test $? = 0
diag "$took ms, TCP $tcp ms"
# data that arrived over TCP before there was a ring does not count
ringed=$(grown 0 ring-rx-bytes)
ok "two readers, rings: rings are used" test "$ringed" -gt $((mib * 64 * 1024))
ok "two readers, rings: in copies" test "$(grown 0 spliced-copy-bytes)" -ge "$ringed"
ok "two readers, rings: no long waits" test "$took" -lt $((4 * tcp + 1000))

# ---- data that is kept for long ----

# a larger ring would come by way of REVOKE
set_net ring_size=32768
keep 20000 $rest
mark 0
ok "kept for long: the stream continues" go_on held read
ok "kept for long: the stream continues on its ring" test "$(grown 0 ring-rx-bytes)" -ge $((rest - 40000))
ok "kept for long: its ring is not taken back" test "$(grown 0 revokes-tx)" = 0
ok "kept for long: the socket is closed" go_on read closed
ok "kept for long: other streams use the link" carried ring $bytes inet inet
ok "kept for long: no socket remains" wait_for 20 no_sockets
ok "kept for long: the module can be unloaded" wait_for 20 unload_module
kept "kept for long"
done_testing
