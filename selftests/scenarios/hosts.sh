#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=2 kernels=6.12,6.1,debug timeout=400
# "scripts/bench hosts" between two machines with ssh access.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"
top=$(cd "$(dirname "$0")/../.." && pwd)

load || bail "cannot load the module"
set_net link_idle_ms=7777

# Both guests see the files of this machine, but not what the other one writes.
ssh-keygen -q -t ed25519 -N '' -f "$tmp/key"
on 1 "umask 077; mkdir -p ~/.ssh && echo '$(<"$tmp/key.pub")' >~/.ssh/authorized_keys"
on 1 dropbearkey -t ed25519 -f "$tmp/host" >/dev/null
on_bg 1 "exec dropbear -F -E -s -p $ADDR4_1:2022 -r $tmp/host -P ''" >"$tmp/server.log" 2>&1
server=$!
ok "the ssh server listens" wait_for 60 listens 1 2022 || diag <"$tmp/server.log"
export BENCH_SSH="ssh -p 2022 -F none -i $tmp/key -o StrictHostKeyChecking=no -o UserKnownHostsFile=$tmp/known"

bench_hosts() { timeout 300 "$top/scripts/bench" hosts -r 1 -t 20 -n "1 4" -d eth0:rxe0 "$@" tcp ours-ring; }
measured() { jq -e '[.paths[] | select(.name == ("tcp", "ours-ring")) | .results["rtt-64"].median] | length == 2 and all(. > 0)' "$top/build/bench/hosts/hosts.json"; }
as_before() { [ "$(in_all sysctl -n net.rdmastream.ring_mode net.rdmastream.link_idle_ms | sort -u | tr '\n' ' ')" = "2 7777 " ]; }
nothing_left() {
	! in_all ls -d /tmp/rdmastream-bench.* && ! in_all pgrep -l 'rs_bench|^ssh$'
}

ok "refused: the module is not loaded" eval '! bench_hosts root@10.77.0.99 10.77.0.99'
ok "refused: no files remain" nothing_left
ok "two carriers are measured" bench_hosts "root@$ADDR4_1" "$ADDR4_1"
ok "two carriers are in the file of results" measured
ok "settings are as before" as_before
ok "no files remain" wait_for 10 nothing_left
kill $server
wait $server 2>/dev/null
done_testing
