#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The control group that pays for the links of a host has no memory left: it is above memory.high,
# where a task that charges it is put to sleep, or at memory.max.  Links that its host is asked for,
# or wants, are refused; rdma_cm has one worker for all hosts, and a link of another one does not
# wait.
# Run by ../hca.sh.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/../lib.sh"

groups=/sys/fs/cgroup
load || bail "cannot load the module"
mountpoint -q $groups || mount -t cgroup2 none $groups || bail "no control groups"
echo +memory >$groups/cgroup.subtree_control || bail "no memory control groups"
use ring
set_net loopback=1

group=$groups/payer
event() { awk -v name="$1" '$1 == name { print $2 }' $group/memory.events; }
links() { on "$1" rsctl -j links | jq '[.[] | select(.state == "up")] | length'; }
no_links() { [ "$(links 0)$(links 1)" = 00 ]; }
# Requests that were refused, and links that were begun and had no memory for the rest.
failed() { echo $(($(grown "$1" reason:link-busy) + $(grown "$1" links-failed))); }
rings() { on "$1" rsctl -j sockets | jq '[.[] | select(.rx.ring_size)] | length'; }
itself() {	# VM: a stream with itself, until "go"
	local name=ADDR4_$1
	on_bg "$1" rs_stream -b -k inet -l "${!name}" -n 100K -t 200 --hold-at 50K --hold "$tmp/go" >"$tmp/itself" 2>&1
	own=$!
}
ended() {	# PID NAME FILE
	wait "$1"
	ok "$2" test $? = 0 || diag <"$tmp/$3"
}
# Attempts as fast as they come.
hammer() {
	for _ in {1..20}; do
		hurry
		pause 0.1
	done
}

# Streams between the hosts; the listener, on the one or the other, is in the group.  They pause
# before it has no memory left.
streams=(-k inet -e -C 4 -n 200K -t 250 --hold-at 50K --hold "$tmp/go")
begin() {	# VM
	local name=ADDR4_$1 port=$((7600 + RANDOM % 1000))
	rm -f "$tmp/go" "$tmp/go.held"
	in_all rsctl drain on >/dev/null && wait_for 20 no_links && mkdir $group || return
	(echo "$BASHPID" >$group/cgroup.procs
	 exec on "$1" rs_stream -s -p $port "${streams[@]}") >"$tmp/server" 2>&1 &
	server=$!
	wait_for 20 listens "$1" $port || return
	on $((1 - $1)) rs_stream -c "${!name}" -p $port "${streams[@]}" >"$tmp/client" 2>&1 &
	client=$!
	wait_for 20 test -e "$tmp/go.held" && press
}
# What it has cannot be reclaimed: there is no swap.  The program would need more.
press() {
	kill -STOP "$server" || return
	if [ $limit = high ]; then
		echo 4096 >$group/memory.high
	else
		# the kernel charges up to 256 KiB in advance; beyond the limit a process would be killed
		echo $(($(<$group/memory.current) + (1 << 19))) >$group/memory.max
	fi
}
relieve() { echo max >$group/memory.$limit && kill -CONT "$server"; }

for limit in ${LIMITS:-max high}; do
	all_failed=0	# above all at that of the two hosts which the other one asks
	for host in 0 1; do
		name="host $host, memory.$limit" other=$((1 - host))
		begin $host
		ok "$name: streams begin" test $? = 0
		mark $host
		in_all rsctl drain off >/dev/null
		hammer &
		hammer=$!
		itself $other
		ok "$name: another link comes up" wait_for 5 eval '[ "$(links $other)" -gt 0 ]'
		wait $hammer
		diag "$(failed $host) attempts failed, memory $(<$group/memory.current); $(xargs <$group/memory.events)"
		all_failed=$((all_failed + $(failed $host)))
		ok "$name: no link" test "$(links $host)" = 0
		ok "$name: no ring" test "$(rings $host)" = 0 || on $host rsctl -o sockets | diag
		relieve
		# a stream whose group could not pay for a ring waits up to 26 s, then wants a link
		ok "$name is over: a link comes up" wait_for 40 eval '[ "$(links $host)" -gt 0 ]'
		ok "$name is over: there are rings" wait_for 40 eval '[ "$(rings $host)" -gt 0 ]'
		touch "$tmp/go"
		ended $client "$name: the client's streams are complete" client
		ended $server "$name: the server's streams are complete" server
		ended $own "$name: the other host's stream is complete" itself
		ok "$name: no process was killed" test "$(event oom_kill)" = 0
		ok "$name: the group can be removed" wait_for 20 rmdir $group
	done
	ok "memory.$limit: attempts have failed" test $all_failed -gt 5
done
set_net loopback=0
ok "no stream remains" wait_for 40 no_streams
done_testing
