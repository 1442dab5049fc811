#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=1 kernels=6.12,6.1,debug timeout=600 seed=1
# Limits on memory: at a limit, new requests are refused or wait, as with TCP; nothing is lost,
# and all memory is freed at the end.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"

load || bail "cannot load the module"
set_net loopback=1 link_flap_decay_ms=100

# ---- control groups ----

groups=/sys/fs/cgroup
mountpoint -q $groups || mount -t cgroup2 none $groups || bail "no control groups"
echo +memory >$groups/cgroup.subtree_control || bail "no memory control groups"
mkdir $groups/test
within() { (echo "$BASHPID" >$groups/test/cgroup.procs && "$@"); }	# CMD...

# Bytes charged to sockets.  The kernel updates small changes late, and shows 0 for negative
# values.
charged() { awk '$1 == "sock" { print $2 }' $groups/test/memory.stat; }
is_charged() { [ "$(charged)" = "$1" ]; }

# A TCP socket holds some bytes, so that a negative charge would be seen.
exec {go}<> <(:)
within rs_backlog -k tcp4 -p 7299 -C 8 -z 900K -w 500 -t 500 -H <&$go >"$tmp/held" &
holder=$!
ok "charged: bytes remain in TCP's queue" wait_for 20 test -s "$tmp/held"
sleep 3
before=$(charged)
diag "TCP is charged $before bytes"
ok "charged: they are charged" test "$before" -gt 100000

rounds=134	# times 25 times three
[ "$SLOW" = 1 ] || rounds=4
for how in tcp prelude ring; do
	use $how
	ok "charged: $how, accepted late" within rs_backlog -n $rounds -C 25 -t 250
	ok "charged: $how, the charge is as before" wait_for 10 is_charged "$before"
	diag "$(charged)"
done
echo >&$go
wait $holder
ok "charged: the bytes in TCP's queue are correct" test $? = 0
ok "charged: nothing remains charged" wait_for 10 is_charged 0

# ---- what comes and is not read ----

counted() { [ "$(grown 0 "$1")" -gt 0 ]; }
backlog() {	# CLIENTS BYTES: begin; go on by "go_on"
	rm -f "$tmp/held"
	rs_backlog -C "$1" -z "$2" -w 1000 -t 400 -H <&$go >"$tmp/held" &
	holder=$!
	wait_for 30 test -s "$tmp/held"
}	# not within "ok", whose output it would keep open
go_on() {
	echo >&$go
	wait $holder
}
pages() { awk '$1 == "TCP:" { print $NF }' /proc/net/sockstat; }
# each CPU may keep a MiB in reserve
few_pages() { [ "$(pages)" -le "$1" ]; }

for how in tcp ring; do
	use $how
	mark 0
	backlog 16 900K
	ok "not accepted: $how, clients send" test $? = 0
	ok "not accepted: $how, the server has 64 KiB of each" \
		test "$(grown 0 tcp-rx-bytes)" -le $((16 * 65536))
	ok "not accepted: $how, there is no ring" test "$(grown 0 ring-rx-bytes)" = 0
	go_on
	ok "not accepted: $how, all data arrives" test $? = 0
done
ok "accepted connections get a ring" counted ring-rx-bytes
ok "not accepted: all memory is freed" wait_for 10 few_pages 300

# ---- tcp_mem ----

# One after the other: above the limit, TCP resets sockets that close before everything is
# acknowledged.
rs_autocork serve 7400 &
server=$!
ok "tcp_mem: a server starts" wait_for 20 listens 0 7400
tcp_mem=$(</proc/sys/net/ipv4/tcp_mem)
for how in tcp ring; do
	use $how
	echo 512 768 1024 >/proc/sys/net/ipv4/tcp_mem
	backlog 24 900K
	ok "tcp_mem: $how, clients send until the limit" test $? = 0
	diag "$(pages) pages, $(<"$tmp/held") bytes"
	# each may have one packet beyond the limit
	ok "tcp_mem: $how, the limit is respected" few_pages $((1024 + 24 * 17))
	# as with TCP: a few KiB with each window probe
	ok "tcp_mem: $how, other connections continue" rs_autocork turns "$ADDR4_0" 7400 1000
	# TCP itself needs minutes to retransmit data for which there is no memory
	echo "$tcp_mem" >/proc/sys/net/ipv4/tcp_mem
	go_on
	ok "tcp_mem: $how, all data arrives" test $? = 0
	echo 512 768 1024 >/proc/sys/net/ipv4/tcp_mem
	ok "tcp_mem: $how, slow readers get everything" \
		rs_stream -b -k inet -p 7401 -C 8 -n 2M -r 4K -t 100
	echo "$tcp_mem" >/proc/sys/net/ipv4/tcp_mem
	ok "tcp_mem: $how, all memory is freed" wait_for 10 few_pages 300
done
kill $server
wait $server 2>/dev/null

# ---- memory.max ----

# TCP needs 23 MB.  Rings take the rest, but not all of it.
at_most() { awk '$1 == "max" { print $2 }' $groups/test/memory.events; }
# Rings that do not fit are refused before that.
was_reached() { [ "$(at_most)" -gt "$before" ] || counted reason:no-memory; }
# How much rings take, and when, depends on the kernel.
until_reached() {
	local most
	for ((most = 26; most > 22; most--)); do
		echo ${most}M >$groups/test/memory.max
		within rs_backlog -C 24 -z 900K -n 3 -t 100 || return
		[ $how = ring ] && ! was_reached || break
	done
	echo "$most MiB"
}
for how in tcp ring; do
	use $how
	mark 0
	before=$(at_most)
	ok "memory.max: $how" until_reached
	[ $how = tcp ] || ok "memory.max: $how, it was reached" was_reached
	echo max >$groups/test/memory.max
	ok "memory.max: $how, the charge is as before" wait_for 10 is_charged 0
done

# A program that closes connections and opens others at once needs no memory for both.
closed_is_free() {
	within rs_backlog -C 24 -z 900K -n 9 -t 100 -M $groups/test/memory.current >"$tmp/closed" ||
		return
	sort -n "$tmp/closed"
	[ "$(sort -n "$tmp/closed" | tail -n 1)" -lt $((4 << 20)) ]
}
for how in tcp ring; do
	use $how
	ok "closed: $how, close() has freed the memory" closed_is_free
done

# ---- writers on rings whose peers do not read ----

programs=$(realpath "$(dirname "$0")/../programs")
rs_memory() { timeout 120 python3 "$programs/rs_memory.py" "$ADDR4_0" "$@"; }
at_most_more() {	# MOST CMD...
	local more
	more=$(rs_memory "${@:2}") && echo "$more" && [ "$more" -le "$1" ]
}
use ring
scarce() {	# PAGES MS
	local more
	more=$(rs_memory scarce 24) && echo "$more" &&
		[ "${more% *}" -le "$1" ] && [ "${more#* }" -ge "$2" ]
}
ok "writers on rings: tcp_mem is respected, and poll() waits for memory" \
	scarce $((256 * $(nproc) + 3 * 24)) 250
# 256 pieces of the size that is allowed without memory; a nap for each takes six seconds
ok "writers on rings: tcp_mem does not stop one whose peer reads" \
	at_most_more $((3000 * SLOW)) blocked 24
# As with TCP, the kernel looks for a process to kill; the group has none.
say "allocations fail from here on"
ok "writers on rings: memory.max is respected" at_most_more $((256 << 10)) group 24 $groups/test
say "allocations fail no more"
ok "writers on rings: all memory is freed" wait_for 10 few_pages 300

# ---- memory.high, accepted connections ----

ok "memory.high: a call that peeks does not wait for memory" at_most_more 200 high 8 $groups/test
ok "memory.high: peeking sees as much as with TCP" at_most_more 0 peeks 8 $groups/test
use tcp
costs() {	# LEAST
	local more
	more=$(rs_memory accepted 400 $groups/test) && echo "$more" && [ "$more" -ge "$1" ]
}
# older kernels do not charge the socket, either
[[ $(uname -r) = 6.1.* ]] ||
	ok "an accepted connection is charged to the program that accepts it" costs 1200
use ring

# ---- what is charged beside the bytes, closed sockets ----

crumbs() {	# what keeps a byte takes at least 80
	rs_memory crumbs 2 >"$tmp/crumbs" && awk '{ print } END { exit !($1 > 200 && ($1 - 1) * 80 <= $2) }' "$tmp/crumbs"
}
ok "tiny messages: their memory is charged, not only their bytes" crumbs

max_orphans=$(sysctl -n net.rdmastream.max_orphans)
tw_buckets=$(sysctl -n net.ipv4.tcp_max_tw_buckets)
closed() {	# LEAST MOST: that many of 40 are reset
	rs_memory closed 40 >"$tmp/reset" && awk -v least="$1" -v most="$2" \
		'{ print } END { exit !($1 >= least && $1 <= most) }' "$tmp/reset"
}
none_closed() { rsctl -j sockets mode closed | jq -e 'length == 0' >/dev/null; }
for how in tcp ring; do
	use $how
	ok "closed: $how, below the limit nothing is reset" closed 0 0
	# those that have not ended count for the next ones
	ok "closed: $how, they have ended" wait_for 20 none_closed
	set_net max_orphans=20
	mark 0
	ok "closed: $how, beyond the limit connections are reset" closed 20 21
	ok "closed: $how, the reason is orphan-limit" test "$(grown 0 reason:orphan-limit)" -ge 20
	# as with TCP, which has no socket for them any more
	set_net max_orphans=8
	ok "closed: $how, those that only wait for the peer's end do not count" at_most_more 0 waiting 20
	set_net max_orphans="$max_orphans"
	ok "closed: $how, all then wait for the peer's end" eval '! at_most_more 19 lingering 20'
	sysctl -q net.ipv4.tcp_max_tw_buckets=8
	ok "closed: $how, no more than tcp_max_tw_buckets wait for it" at_most_more 8 lingering 20
	sysctl -q net.ipv4.tcp_max_tw_buckets="$tw_buckets"
	ok "closed: $how, all memory is freed" wait_for 20 few_pages 300
done

# A namespace other than the initial one leaves half of them to others.
own() { ip netns exec own "$@"; }
closed_own() {	# about 10 of 40 are not reset
	own timeout 120 python3 "$programs/rs_memory.py" 127.0.0.1 closed 40 >"$tmp/reset" &&
		awk '{ print } END { exit !($1 >= 28 && $1 <= 31) }' "$tmp/reset"
}
own_none() { own rsctl -j sockets mode closed | jq -e 'length == 0' >/dev/null; }
ok "closed: a namespace" eval 'ip netns add own && ip -n own link set lo up &&
	own sysctl -q net.rdmastream.{prelude=0,ring_mode=0,loopback=1}'
set_net max_orphans=20
ok "closed: a namespace may have half of what others leave of the host's limit" closed_own
set_net max_orphans="$max_orphans"
ok "closed: a namespace's own are gone" wait_for 30 own_none
own sysctl -q net.rdmastream.max_orphans=10
ok "closed: a namespace may have a lower limit" closed_own
ok "closed: the namespace can be removed" ip netns del own

# The documented difference: our closed sockets do not count for tcp_max_orphans.
orphans() {	# RESET CMD...: resets and TCPAbortOnMemory of 16 that are closed, of TCP, then of ours
	rs_memory orphans 16 "${@:2}" >"$tmp/orphans" || return
	cat "$tmp/orphans"
	[ "$(tail -n 1 "$tmp/orphans")" = "16 16 $1 $1" ]
}
# without a link they need no records
use prelude
rsctl drain on >/dev/null
ok "orphans: no link" wait_for 30 no_link 0
ok "orphans: without records as with TCP: all are reset" orphans 16 true
rsctl drain off >/dev/null
for how in tcp ring; do
	use $how
	mark 0
	ok "orphans: $how, none is reset where TCP resets all" orphans 0 \
		rs_stream -b -k inet -p 7402 -C 16 -n 64K --half-close -t 100
	[ $how != ring ] || ok "orphans: some of it by rings" counted ring-rx-bytes
done

# ---- rmb_max, files, processes, locked memory ----

rmb_max=$(sysctl -n net.rdmastream.rmb_max)
set_net rmb_max=262144
# existing sockets remain
nothing_registered() { rsctl -j memory | jq -e '[.. | .bytes? // 0] | add == 0'; }
rsctl drain on >/dev/null
wait_for 20 nothing_registered
rsctl drain off >/dev/null
# the stream that asks for the link lasts until it is there
rs_stream -b -k inet -p 7403 -C 1 -n 1K --hold "$tmp/linked" -t 60 >/dev/null &
asks=$!
ok "rmb_max: a link" wait_for 30 has_link 0
touch "$tmp/linked"
wait $asks
# they pause until one is refused: without that, they may end before they have to share
refused() { [ "$(grown 0 reason:rmb-limit)" -gt 0 ]; }
go_when_refused() {	# FILE: rs_stream's --hold
	wait_for 40 test -e "$1.held"
	wait_for 40 refused
	: >"$1"
}
mark 0
go_when_refused "$tmp/go" &
ok "rmb_max: connections without a ring use TCP" \
	rs_stream -b -k inet -p 7403 -C 24 -n 1M --hold-at 4K --hold "$tmp/go" -t 100
ok "rmb_max: some connections got no ring" refused
set_net rmb_max="$rmb_max"
few_files() { (ulimit -n 40 && ! rs_backlog -p 7404 -C 24 -z 4K); }
ok "files: connect or accept fails" few_files
ok "files: existing streams continue" rs_stream -b -k inet -p 7405 -C 4 -n 256K -t 100

as_user() { exec setpriv --reuid 65534 --clear-groups --bounding-set -all "$@"; }
few_tasks() { (ulimit -u 16 && as_user "$@"); }
# Forks until that is refused, says so, and goes on until standard input has something.
forks() {
	few_tasks python3 -c '
import os, select, signal, sys
tasks, refused = [], 0
while not select.select([sys.stdin], [], [], 0.01)[0]:
    try:
        tasks.append(os.fork())
    except BlockingIOError:
        if not refused:
            print("refused", flush=True)
        refused += 1
        continue
    if not tasks[-1]:
        signal.pause()
sys.stdin.readline()
for task in tasks:
    os.kill(task, signal.SIGKILL)'
}
none_starts() {	# neither a process nor a thread
	few_tasks python3 -c '
import os, sys, threading
try:
    if not os.fork():
        os._exit(0)
except BlockingIOError:
    try:
        threading.Thread().start()
    except RuntimeError:
        sys.exit(3)'
	[ $? = 3 ]
}
# where that user may create files
chmod 711 "$tmp"
mkdir -m 777 "$tmp/any"
for how in tcp ring; do
	use $how
	# the link is established when the user has used up its limit
	rsctl drain on >/dev/null
	ok "processes: $how, no ring yet" wait_for 20 nothing_registered
	hold=$tmp/any/$how
	few_tasks rs_stream -b -e -k inet -p 7406 -C 1 -n 1M --hold-at 4K --hold "$hold" -t 100 &
	streams=$!
	wait_for 30 test -e "$hold.held"
	forks <&$go >"$tmp/forks" &
	holder=$!
	ok "processes: $how, fork() is refused" wait_for 20 test -s "$tmp/forks"
	mark 0
	ok "processes: $how, neither processes nor threads start" wait_for 20 none_starts
	rsctl drain off >/dev/null
	[ $how = tcp ] || ok "processes: the module's workers establish a link" wait_for 30 has_link 0
	touch "$hold"
	wait $streams
	ok "processes: $how, a stream continues" test $? = 0
	ok "processes: $how, it used this carrier" counted $how-tx-bytes
	[ $how = tcp ] || ok "processes: and a ring" test "$(grown 0 links-up)" -gt 0
	ok "processes: $how, the limit is still reached" wait_for 20 none_starts
	echo >&$go
	wait $holder
done

locked() {	# KIB KIND: prints how many calls the limit refused
	(ulimit -l "$1" && as_user rs_stream -b -k "$2" -p 7407 -C 1 -n 8M -m 0 -w 16K \
		-W zerocopy -t 100) >"$tmp/locked" || return
	jq .enobufs "$tmp/locked"
}
waits() {	# KIND
	local without with
	without=$(locked unlimited "$1") && with=$(locked 64 "$1") || return
	echo "refused without the limit: $without, with it: $with"
	[ "$without" = 0 ] && [ "$with" -gt 0 ]
}
for how in tcp ring; do
	use $how
	mark 0
	ok "locked memory: $how, MSG_ZEROCOPY waits for RLIMIT_MEMLOCK" waits inet
	ok "locked memory: $how, it used this carrier" counted $how-tx-bytes
done
ok "locked memory: as with TCP" waits tcp4
ok "all memory is freed" wait_for 10 few_pages 300

ok "no socket remains" wait_for 20 no_sockets
ok "the module can be unloaded" wait_for 20 unload_module
done_testing
