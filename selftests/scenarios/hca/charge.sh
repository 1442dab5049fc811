#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The control group of the first socket of a namespace pays for its links.
# At its limit there are fewer rings, and nothing else happens.  Run by ../hca.sh.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/../lib.sh"

groups=/sys/fs/cgroup
load || bail "cannot load the module"
use ring
mountpoint -q $groups || mount -t cgroup2 none $groups || bail "no control groups"
echo +memory >$groups/cgroup.subtree_control || bail "no memory control groups"

kernel() { awk '$1 == "kernel" { print $2 }' $groups/payer/memory.stat; }
event() { awk -v name="$1" '$1 == name { print $2 }' $groups/payer/memory.events; }
streams=(-k inet -p 7300 -e -C 64 -n 2M -m 64K --rcvbuf 64K)
receives() {	# registered, of VM 1
	on 1 rsctl -j links | grep -o '"rmb_bytes":[0-9]*' | awk -F : '{ n += $2 } END { print n + 0 }'
}
pays() {	# for all that VM 1 has registered, and that is more than its processes cost
	echo "kernel memory: $(kernel) bytes, registered: $(receives)"
	[ "$(receives)" -ge $((2 << 20)) ] && [ "$(kernel)" -ge "$(receives)" ]
}
is_over() { [ "$(kernel)" -lt $((1 << 20)) ]; }

framed() { on 1 rsctl -j sockets | grep -o '"mode":"framed"' | wc -l; }

# Streams that go on until "end".  Receive buffers are small: what TCP itself needs is charged
# to the group, too.
begin() {
	rm -f "$tmp"/go*
	in_all rsctl drain on >/dev/null && in_all rsctl drain off >/dev/null || return
	mkdir $groups/payer || return
	echo "${1:-max}" >$groups/payer/memory.max
	([ "$listener" = host ] || echo "$BASHPID" >$groups/payer/cgroup.procs
	 exec on 1 rs_stream -s "${streams[@]}" -t 200) >/dev/null &
	server=$!
	wait_for 20 listens 1 "${streams[3]}" && echo $server >$groups/payer/cgroup.procs || return
	[ "$listener" = group ] || kill -STOP $server
	[ "$spare" = max ] || echo $(($(<$groups/payer/memory.current) + spare)) >$groups/payer/memory.max
	on 0 rs_stream -c "$ADDR4_1" "${streams[@]}" -t 200 --wait --hold "$tmp/go" >/dev/null &
	client=$!
	if [ "$listener" = host ]; then
		wait_for 30 eval '[ "$(framed)" = 64 ]' && kill -CONT $server || return
	fi
	wait_for 100 test -e "$tmp/go.held"
}
end() {
	touch "$tmp/go"
	wait $client && wait $server
}
links() { on 1 rsctl -j links | grep -o '"state":"up"' | wc -l; }
no_group() { rmdir $groups/payer; }

use ring
listener=group spare=max
begin
ok "registered memory is charged" wait_for 10 pays
diag "$(pays)"
all=$(receives)
end
ok "streams are complete" test $? = 0
ok "at the end nothing is charged" wait_for 20 is_over
no_group

# Something else makes the socket that listens, then starts the server.  The program that accepts is
# charged.
listener=host
begin
ok "a listener without a group: registered memory is charged" wait_for 10 pays
diag "$(pays)"
end
ok "a listener without a group: streams are complete" test $? = 0
wait_for 20 no_group
listener=group

# RMBs have an eighth of it: too little for that.
limit=$((24 << 20))
begin $limit
diag "$(pays)"
ok "a limit: less is registered" test "$(receives)" -lt "$all"
ok "a limit: an eighth at most" test "$(receives)" -le $((limit / 8))
ok "a limit: rsctl shows it" sh -c "on 1 rsctl memory | grep -q '^rings: .* of 3\.0M'"
end
ok "a limit: streams are complete" test $? = 0
ok "a limit: no process was killed" test "$(event oom_kill)" = 0
ok "a limit: at the end the group can be removed" wait_for 20 no_group

# Too little is left for an RMB, as it is to leave 2 MiB: nothing is tried.
streams=(-k inet -p 7302 -e -C 2 -n 1M -m 16K --rcvbuf 16K)
spare=$((3 << 19))
begin
diag "$(pays); $(event max) times at the limit"
ok "little is left: nothing is registered" test "$(receives)" = 0
ok "little is left: memory.max was never hit" test "$(event max)" = 0
end
ok "little is left: streams are complete" test $? = 0
ok "little is left: no process was killed" test "$(event oom_kill)" = 0
wait_for 20 no_group
spare=max

# What else is charged, a link and its queues above all, has a thirty-second of it each.
set_net links_per_path=8
streams=(-k inet -p 7301 -e -C 16 -n 1M -m 16K --rcvbuf 16K)
begin
ok "eight links" wait_for 20 eval '[ "$(links)" = 8 ]'
diag "$(links) links"
end
ok "eight links: streams are complete" test $? = 0
wait_for 20 no_group
begin $((8 << 20))
sleep 2
diag "$(links) links; $(pays)"
ok "a limit of four links: two for one address" test "$(links)" = 2
end
ok "two links: streams are complete" test $? = 0
ok "two links: no process was killed" test "$(event oom_kill)" = 0
ok "two links: at the end the group can be removed" wait_for 20 no_group

# A group that is gone does not limit programs without a group.
rm -f "$tmp"/go*
in_all rsctl drain on >/dev/null && hurry
begin_streams -C 1 -n 100K -t 100 --hold-at 50K --hold "$tmp/go"
ok "no group any more: eight links" wait_for 60 eval '[ "$(links)" = 8 ]' ||
	for what in "-s peers" "-d sockets" stats drain memory; do
		# shellcheck disable=SC2086	# words
		in_all rsctl $what
	done 2>&1 | diag
diag "$(links) links"
in_all touch "$tmp/go"
whole_streams "no group any more"
set_net links_per_path=1
done_testing
