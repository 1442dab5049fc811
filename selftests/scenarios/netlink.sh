#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=2 kernels=6.12,6.1,debug timeout=400
# The interface to user space: rsctl's JSON matches its schema, filters and settings work, and
# netlink refuses malformed requests with an error message.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=selftests/scenarios/rdma-ports.sh
. "$(dirname "$0")/rdma-ports.sh"

load || bail "cannot load the module"
schema=$TOOLS/rsctl.schema.json

valid() {	# COMMAND [FILTER...]: its JSON is as the schema says
	rsctl -j "$@" >"$tmp/json" && /usr/bin/python3 - "$schema" "$1" "$tmp/json" <<-'END'
		import json, sys, jsonschema
		with open(sys.argv[1]) as f:
		    schema = json.load(f)
		with open(sys.argv[3]) as f:
		    told = json.load(f)
		schema["$ref"] = "#/$defs/" + sys.argv[2]
		jsonschema.validate(told, schema)
		print(len(told), "entries")
	END
}
entries() {	# N COMMAND [FILTER...]: it reports N entries
	local want=$1 n
	shift
	n=$(rsctl -j "$@" | jq length)
	echo "$n entries, wanted $want"
	[ "$n" = "$want" ]
}

# Two connections on rings, to be listed.
use ring
on_bg 1 "exec rsctl check listen 7000"
server=$!
wait_for 20 listens 1 7000
python3 - "$ADDR4_1" <<'END' &
import socket, sys, time
line = "rsctl-check give 200000".ljust(47).encode() + b"\n"
socks = [socket.socket(socket.AF_INET, socket.SOCK_STREAM, 257) for _ in range(2)]
for s in socks:
    s.connect((sys.argv[1], 7000))
while True:
    for s in socks:
        s.sendall(line)
        left = 200000
        while left:
            left -= len(s.recv(left))
    time.sleep(0.3)
END
client=$!
on_rings() { [ "$(rsctl -j sockets carrier ring | jq '[.[] | select(.rx.carrier == "ring")] | length')" = 2 ]; }
ok "two sockets are on rings" wait_for 30 on_rings

for c in links sockets stats peers devices memory show version drain explain; do
	ok "$c: JSON as the schema says" valid $c
done
rsctl -j check "$ADDR4_1" 7000 >"$tmp/json"
ok "check: JSON as the schema says" valid check "$ADDR4_1" 7000

peer=$(rsctl -j peers | jq -r '.[0].peer')
ok "sockets of a port" entries 2 sockets dport = :7000
ok "sockets of another port" entries 0 sockets port 7001
ok "sockets to an address" entries 2 sockets dst "$ADDR4_1"
ok "sockets to a network" entries 2 sockets dst = "${ADDR4_1%.*}.0/24" carrier ring
ok "sockets to another address" entries 0 sockets dst "$ADDR4_0"
ok "sockets of a peer" entries 2 sockets peer "${peer:0:6}"
ok "sockets on a device" entries 2 sockets device rxe0
ok "sockets on another device" entries 0 sockets device rxe1
ok "sockets that listen" entries 0 sockets state listen
ok "sockets of TCP's states" entries 2 sockets state established and dst "$ADDR4_1:7000"
ok "all sockets but some" entries 0 sockets port 7000 dport != 7000
ok "links of a peer" entries 1 links peer "$peer" state up
ok "links on another device" entries 0 links device rxe1
ok "links on a port" entries 1 links device rxe0 port 1
ok "links on another port" entries 0 links port 2
ok "one peer" entries 1 peers "${peer:0:8}"
ok "one device" entries 1 devices rxe0
ok "no such device" entries 0 devices rxe1
rdma dev set rxe0 name rxe9
ok "a device that was renamed" entries 1 devices rxe9
ok "links of a device that was renamed" entries 1 links device rxe9
ok "... do not have its old name" entries 0 links device rxe0
rdma dev set rxe9 name rxe0
link=$(rsctl -j links | jq '.[0].id')
ok "memory of a link" eval "rsctl -j memory link $link | jq -e 'length >= 1 and all(.[]; .link == $link)'"
ok "a device has addresses" eval "rsctl -j devices | jq -e '.[0] | .usable and .netdev == \"eth0\" and
	(.addresses | index(\"$ADDR4_0\"))'"

# A link that ends before it is up.
active=0
rsctl -j links | jq -e '.[0].active' >/dev/null || active=1
no_links() { [ "$(rsctl -j links | jq length)" = 0 ]; }
on 1 nft "$(rdma_rules broken drop)"
rsctl drain on
ok "no links are listed" wait_for 20 no_links
set_net cm_timeout_ms=300
rsctl drain off
retell "link" < <(on $active rs_netlink ended 100 2>&1)
on 1 nft delete table inet broken
set_net cm_timeout_ms=3000
hurry
ok "two sockets are on rings again" wait_for 60 on_rings

# An IPv4 client of a dual-stack listener has an address of IPv6.
mapped() { [ "$(on 1 rsctl -j sockets "$@" | jq length)" = 2 ]; }
ok "sockets from an IPv4 address" mapped src "$ADDR4_1" dst "$ADDR4_0"
ok "sockets from an IPv4 network" mapped dst "${ADDR4_0%.*}.0/24"
ok "sockets with an address as printed" mapped src "[::ffff:$ADDR4_1]:7000"

on_bg 1 "exec rsctl -j monitor >$tmp/events"
monitor=$!
wait_for 20 on 1 grep -q drain "$tmp/events"
on 1 rsctl set link_probe_ms 499
on 1 rsctl drain on
on 1 rsctl drain off
hurry
set_told() { on 1 jq -en "[inputs | select(.event == \"setting\" and .name == \"link_probe_ms\" and .value == 499)] | length == 1" "$tmp/events"; }
ok "a setting that changes is an event" wait_for 10 set_told
ok "two sockets are on rings once more" wait_for 60 on_rings
kill $monitor
wait $monitor 2>/dev/null
on 1 jq -s . "$tmp/events" >"$tmp/json"
events_valid() {
	/usr/bin/python3 - "$schema" "$tmp/json" <<-'END'
		import json, sys, jsonschema
		with open(sys.argv[1]) as f:
		    schema = json.load(f)
		with open(sys.argv[2]) as f:
		    told = json.load(f)
		schema["$ref"] = "#/$defs/monitor"
		for event in told:
		    jsonschema.validate(event, schema)
		print(sorted({event["event"] for event in told}))
	END
}
ok "events: JSON as the schema says" events_valid

ok "set a setting" eval 'rsctl set ring-size 64K && [ "$(sysctl -n net.rdmastream.ring_size)" = 65536 ]'
ok "set another by an abbreviation of its name" eval 'rsctl set net.rdmastream.hello=1234 &&
	rsctl -j show hello | jq -e ".[0] | .name == \"hello_timeout_ms\" and .value == 1234 and .default == 5000"'
refused() { ! rsctl set "$1" "$2" 2>"$tmp/err" && grep -q "$3" "$tmp/err" && [ "$(wc -l <"$tmp/err")" = 1 ]; }
ok "a value out of range is refused" refused ring_mode 3 "range"
ok "a value that is not a power of two is refused" refused ring_size 100000 "power of two"
ok "a read-only setting is refused" refused family 5 "read-only"
ok "a value that is not a number is refused" refused ring_mode many "number"
ok "an ambiguous setting is refused" refused ring 1 "several"
as_nobody() { setpriv --reuid=65534 --clear-groups rsctl "$@"; }
ok "an unprivileged user cannot set one" eval '! as_nobody set ring_mode 1 2>"$tmp/err" && grep -q CAP_NET_ADMIN "$tmp/err"'
ok "an unprivileged user can read all settings" as_nobody show

ok "rates" eval 'timeout 5 rsctl -j stats -w >"$tmp/rates"; head -n 1 "$tmp/rates" |
	jq -e "any(.[]; .name == \"ring-rx-bytes\" and .since > 0 and .rate > 0)"'
ok "rates as text" eval 'timeout 4 rsctl stats --watch=1 | grep -q ring-rx-bytes'

sampled() {
	rsctl -j sockets state framed | jq -e 'length == 2 and all(.[]; (.tx.hist | add) > 0 and (.rx.hist | add) > 0)'
}
rsctl set histograms 1
ok "histograms are filled" wait_for 30 sampled
ok "histograms are drawn as text" eval 'rsctl -d sockets state framed | grep -q "#####"'
ok "sockets with all attributes: JSON as the schema says" valid sockets
rsctl set histograms 0

# A sender whose peer does not read: its wait has a reason, and is timed.
kill $client
wait $client 2>/dev/null
lazy() {
	exec python3 - "$ADDR4_1" <<-'END'
		import socket, sys, time
		s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 257)
		s.connect((sys.argv[1], 7000))
		s.sendall("rsctl-check give 100000000".ljust(47).encode() + b"\n")
		s.recv(1)
		time.sleep(1000)
	END
}
waits() {	# REASON
	on 1 rsctl -j sockets | jq -e "any(.[]; .tx.stall == \"$1\" and .tx.stall_us > 100000 and
		any(.tx.stalls[]; .reason == \"$1\" and .count > 0 and .us > 100000))"
}
trace=/sys/kernel/tracing
in_all "[ -d $trace/events ] || mount -t tracefs tracefs $trace; echo 1 >$trace/events/rdmastream/enable"
traced() { on "$1" grep -q "$2" $trace/trace; }	# VM PATTERN
for how in tcp ring; do
	use $how
	[ $how = tcp ] && why=stall-window || why=stall-ring
	lazy &
	client=$!
	ok "$how: a sender waits with reason $why" wait_for 30 waits $why
	on 1 rsctl -o -d sockets state framed | grep stall
	kill $client
	wait $client 2>/dev/null
	timed() { [ "$(counter 1 $why-us)" -gt 100000 ]; }
	ok "$how: the time that a sender waits is counted" wait_for 30 timed
	why=${why^^}
	ok "$how: the time that a sender waits is traced" wait_for 10 traced 1 "rstream_stall: .* us=[0-9]* reason=${why/-/_}"
done
use raw
lazy &
client=$!
ok "plain TCP has its reason" wait_for 30 eval 'rsctl -j sockets reason off | jq -e "any(.[]; .mode == \"fallback\")"'
ok "plain TCP: traced" wait_for 10 traced 0 "rstream_fallback: .* reason=OFF"
in_all "echo 0 >$trace/events/rdmastream/enable"
kill $client
wait $client 2>/dev/null
use ring
kill $server
messages=5000
[ "$KERNEL" != debug ] || messages=1500
retell netlink < <(rs_netlink $messages 2>&1)
hurry
wait $client $server 2>/dev/null
rsctl set hello_timeout_ms 2000
ok "no socket remains" wait_for 40 no_sockets
ok "the module can be unloaded" wait_for 20 unload_module
done_testing
