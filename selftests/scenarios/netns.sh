#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=1 kernels=6.12,6.1,debug timeout=400 append=kmemleak=on
# Network namespaces: each has its own sockets, counters and settings, and is removed with its
# last socket.  The addresses of an RDMA device are those of the initial namespace: elsewhere,
# connections stay on the tcp carrier, or are raw.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"

turns=20 size=1000000

# In namespace NAME, or 0: the initial one.
inside() {	# NAME CMD...
	if [ "$1" = 0 ]; then
		shift
		"$@"
	else
		ip netns exec "$@"
	fi
}
counters() {	# NAME; so mark, grown and assert_carrier know namespaces, too
	inside "$1" rsctl -s -o stats | awk '{ print $1, $2 }'
}
setting() { inside "$1" sysctl -n "net.rdmastream.$2"; }	# NAME SETTING

# Two namespaces, joined with each other.  NAME-up, in the initial one, is joined
# with each of them: it is gone when the namespace really is.
add() {		# NAME NAME
	local name n=0
	wait_for 20 gone "$@" || return
	for name; do
		ip netns add "$name"
		n=$((n + 1))
		ip link add "$name-up" type veth peer name host netns "$name"
		ip -batch - <<-END
			addr add 10.88.$n.1/24 dev $name-up
			addr add fd88:$n::1/64 dev $name-up nodad
			link set $name-up up
		END
		ip -n "$name" -batch - <<-END
			link set lo up
			addr add 10.88.$n.2/24 dev host
			addr add fd88:$n::2/64 dev host nodad
			link set host up
		END
	done
	ip link add across netns "$1" type veth peer name across netns "$2"
	n=0
	for name; do
		n=$((n + 1))
		ip -n "$name" -batch - <<-END
			addr add 10.88.0.$n/24 dev across
			addr add fd88::$n/64 dev across nodad
			link set across up
		END
	done
}
del() {		# NAME...
	local name
	for name; do ip netns del "$name" || return; done
}
gone() {	# NAME...
	local name
	for name; do [ ! -e "/sys/class/net/$name-up" ] || return; done
}
no_stream() { ! inside "$1" rsctl -j sockets | grep -q '"mode"'; }	# NAME

listening() { inside "$1" ss -Hltn "sport = :$2" | grep -q .; }	# NAME PORT

# A stream each way; both ends must succeed.
between() {	# SERVER CLIENT ADDRESS KIND [OPTION...]
	local server=$1 client=$2 host=$3 kind=$4 pid status=0 port=$((7000 + RANDOM % 20000))
	shift 4
	inside "$server" rs_stream -s -k "$kind" -p $port -t 30 "$@" &
	pid=$!
	# without --wait, which would count several connects
	wait_for 20 listening "$server" $port
	inside "$client" rs_stream -c "$host" -k "$kind" -p $port -t 30 "$@" || status=1
	wait $pid || status=1
	return $status
}
# ... that must be counted at both ends and nowhere else.
counted() {	# HOW SERVER CLIENT ADDRESS KIND
	local name how=$1 end
	shift
	for name in 0 a b; do mark $name; done
	between "$@" -n $size || return
	for name in 0 a b; do
		end=0
		[ "$name" != "$1" ] && [ "$name" != "$2" ] || end=$size
		if [ $end = 0 ]; then
			growth $name | awk '$2 { print "elsewhere:", $0; bad = 1 } END { exit bad }'
		else
			assert_carrier "$how" $name $end $end
		fi || return
	done
}

# Streams that continue forever, or that stay open after a byte each way.
busy() { [ "$(grown "$1" tcp-tx-bytes)" -gt $size ] && [ "$(grown "$1" tcp-rx-bytes)" -gt $size ]; }
framed() { [ "$(shown "$1" | grep -c framed)" = "$2" ]; }	# NAME COUNT
# Each of the four has carried bytes both ways.
all_busy() { inside "$1" rsctl -o sockets | awk '$3 == "framed" && $6 && $7 { n++ } END { exit n != 4 }'; }
# All four senders wait for room, as their peer does not read: for the window of records, or
# in spans for TCP's.
all_wait() {
	local records tcp
	records=$(inside "$1" rsctl -d sockets | grep -c ' now .* for ')
	tcp=$(inside "$1" ss -tnoH state established | grep -c 'timer:(persist')
	echo "waiting: $records with records, $tcp in spans"
	[ $((records + tcp)) -ge 4 ]
}
stopped() { ! grep -h ^State: "/proc/$1"/task/*/status | grep -v 'T (stopped)'; }
start() {	# SERVER CLIENT ADDRESS [OPTION...]
	local from=$1 to=$2 host=$3 port=$((7000 + RANDOM % 20000))
	shift 3
	mark "$from"
	ip netns exec "$from" rs_stream -s -k inet6 -p $port -C 4 -t 200 "$@" >"$tmp/server" 2>&1 &
	server=$!
	ip netns exec "$to" rs_stream -c "$host" -k inet6 -p $port -C 4 -t 200 --wait "$@" >"$tmp/client" 2>&1 &
	client=$!
}
stop() {
	kill -KILL "$@"
	wait "$@"
	true
} 2>/dev/null

shown() { inside "$1" rsctl -o sockets | awk 'NR > 1 { print $3, $4, $5, $NF }'; }

# ---- RDMA elsewhere ----

exclusive() { rdma system set netns "$1"; }

# The active side has failed to establish a link, after the other one has requested it.
no_link() {
	local name good=1
	for name in a b; do
		shown $name
		[ "$(shown $name | grep -cx "framed tcp tcp \(link-failed\|wait-link\)")" = 4 ] || return
		[ "$(grown $name links-failed)" = 0 ] || good=0
	done
	return $good
}
stay() {
	inside a sysctl -q -w net.rdmastream.ring_mode=1
	inside b sysctl -q -w net.rdmastream.ring_mode=1
	mark a
	start a b fd88::1 -n 1 --hold "$tmp/never"
	wait_for 30 framed a 4 && wait_for 30 no_link && no_stream 0
	local status=$?
	no_link
	stop $server $client
	return $status
}

# ---- settings ----

of_its_own() {
	local name
	inside a sysctl -q -w net.rdmastream.ring_size=65536 net.rdmastream.negotiate=0 &&
		sysctl -q -w net.rdmastream.ring_threshold=12345 || return
	[ "$(setting a ring_size),$(setting a negotiate),$(setting a ring_threshold)" = 65536,0,16384 ] &&
		[ "$(setting b ring_size),$(setting b negotiate),$(setting b ring_threshold)" = 262144,1,16384 ] &&
		[ "$(setting 0 ring_size),$(setting 0 negotiate),$(setting 0 ring_threshold)" = 262144,1,12345 ] ||
		return
	# what counts is the setting of the client's namespace: "a" sends no option
	mark a
	counted raw b a 10.88.0.2 inet && [ "$(grown a reason:off)" = 1 ] &&
		inside a sysctl -q -w net.rdmastream.negotiate=1
}
# Its memory limit belongs to the host.
of_a_user() {
	unshare -Urn sh -c 'cd /proc/sys/net/rdmastream && echo 0 >ring_mode && ! echo 100000000 >rmb_max'
}

# So its settings of the host are those of the host, as they change.
follows() {
	local pid
	inside 0 sysctl -q -w net.rdmastream.rmb_max=33554432 || return
	unshare -Urn sleep 100 &
	pid=$!
	inside_its_own() { [ "$(readlink "/proc/$pid/ns/net")" != "$(readlink /proc/$$/ns/net)" ]; }
	theirs() { nsenter -t "$pid" -n sysctl -n "net.rdmastream.$1"; }
	is() { [ "$(theirs "$1")" = "$2" ]; }
	wait_for 20 inside_its_own && is rmb_max 33554432 && is links_max 4096 &&
		inside 0 rsctl set links_max 100 && is links_max 100 &&
		inside 0 sysctl -q -w net.rdmastream.rmb_max=67108864 && is rmb_max 67108864 &&
		inside 0 sysctl -q -w net.rdmastream.prelude=0 && is prelude 1
	set -- $?
	inside 0 sysctl -q -w net.rdmastream.{links_max=4096,prelude=1}
	kill "$pid"
	return "$1"
}
# As by netlink; the kernel's own rule asks only for uid 0.
needs_capability() {
	! setpriv --bounding-set=-net_admin --inh-caps=-net_admin \
		sysctl -q -w net.rdmastream.ring_size=65536 &&
		[ "$(setting 0 ring_size)" = 262144 ] &&
		setpriv --bounding-set=-net_admin --inh-caps=-net_admin \
			sysctl -n net.rdmastream.ring_size
}

# ---- the end ----

# While a process is inside, deleting a namespace only removes its name.
deleted() {
	local pid=$1 before
	sent() { nsenter -t "$pid" -n rsctl -s -o stats | awk '$1 == "tcp-tx-bytes" { print $2 }'; }
	more() { [ "$(sent)" -gt $((before + size)) ]; }
	before=$(sent)
	wait_for 30 more && ! gone a && ! gone b
}
reset_seen() {
	wait "$1"
	cat "$2"
	grep -q '"ok":true' "$2"
}
quick() {
	local i
	for ((i = 0; i < turns; i++)); do
		add "a$i" "b$i"
		between "b$i" "a$i" 10.88.0.2 inet -n 20000 || return
		del "a$i" "b$i"
	done
}
all_gone() {
	local i
	for ((i = 0; i < turns; i++)); do gone "a$i" "b$i" || return; done
}

# ---- with and without the module ----

reload() {
	wait_for 20 rmmod rdmastream || return
	! setting a negotiate 2>/dev/null && between a b 10.88.0.1 tcp4 -n $size || return
	insmod "$MODULE" && [ "$(setting a ring_size)" = 262144 ]
}

modprobe -a rdma_cm veth
if exclusive exclusive; then
	load || bail "cannot load the module"
	add a b
	mark a
	ok "devices not shared: raw" counted raw b a 10.88.0.2 inet
	ok "devices not shared: the reason is no-device" test "$(grown a reason:no-device)" = 1
	ok "only the client has a device: raw" counted raw a 0 10.88.1.2 inet
	ok "only the client has a device: the server has no stream" test "$(grown a passive-opens)" = 0
	del a b
	ok "both namespaces are gone" wait_for 20 gone a b
	ok "the module can be unloaded" wait_for 20 rmmod rdmastream
	ok "devices shared again" wait_for 20 exclusive shared
else
	skip "devices not shared" "rdma cannot say so here"
fi

load || bail "cannot load the module"
add a b
ok "a setting belongs to a namespace" of_its_own
ok "the owner of a namespace cannot raise rmb_max" of_a_user
ok "a namespace of its owner has the host's limits, and follows them" follows
ok "uid 0 without CAP_NET_ADMIN cannot change a setting" needs_capability
ok "IPv4 from namespace to namespace" counted tcp b a 10.88.0.2 inet
ok "IPv6 from namespace to namespace" counted tcp a b fd88::1 rds6
ok "within a namespace" between a a 127.0.0.1 rds4 -n $size
ok "from the initial namespace" counted tcp a 0 10.88.1.2 rds4
ok "to the initial namespace, IPv6" counted tcp 0 b fd88:2::1 inet6
ok "no link is established, and the reason is reported" stay
ok "no socket remains" wait_for 20 no_stream a
ok "unloading and loading while namespaces exist" reload
ok "the module serves existing namespaces" counted tcp b a 10.88.0.2 inet
del a b
ok "both namespaces are gone" wait_for 20 gone a b

add a b
start a b fd88::1 -n 1000G
ok "streams are busy" wait_for 40 busy a
del a b
ok "streams continue when the names of the namespaces are deleted" deleted $server
stop $server $client
ok "when the programs are killed, both namespaces are gone" wait_for 40 gone a b

add a b
start a b fd88::1 -n 1000G --expect-reset
ok "streams are busy" wait_for 40 all_busy a
# An end that closes without unread data ends its stream as usual, without a reset.
kill -STOP $server
ok "one end is stopped" wait_for 20 stopped $server
ok "the other cannot send" wait_for 40 all_wait b
del a
stop $server
ok "when one end is killed and its namespace gone, the other is reset" reset_seen $client "$tmp/client"
del b
ok "both namespaces are gone" wait_for 40 gone a b

ok "$turns namespaces are created and removed" quick
ok "none of them remains" wait_for 60 all_gone
ok "the module can be unloaded" wait_for 20 rmmod rdmastream
if [ "$KERNEL" = debug ]; then
	ok "no memory leaks" kmemleak_check
else
	skip "no memory leaks" "only the debug kernel looks for leaks"
fi
done_testing
