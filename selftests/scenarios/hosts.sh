#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=2 kernels=6.12,6.1,debug timeout=400
# "scripts/bench hosts" between two machines with ssh access.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"
top=$(cd "$(dirname "$0")/../.." && pwd)

if ! type sshd >/dev/null 2>&1; then
	skip "bench between hosts" "no sshd: scripts/install-deps suite-ssh"
	done_testing
fi
load || bail "cannot load the module"
set_net link_idle_ms=7777

ssh-keygen -q -t ed25519 -N '' -f "$tmp/key"
cat >"$tmp/sshd" <<END
Port 2022
ListenAddress $ADDR4_1
HostKey $tmp/key
AuthorizedKeysFile $tmp/key.pub
PidFile none
StrictModes no
PermitRootLogin yes
UsePAM no
END
on 1 mkdir -p /run/sshd
for file in sshd key key.pub; do
	on 1 "umask 077; base64 -d <<<$(base64 -w 0 "$tmp/$file") >$tmp/$file"
done
on_bg 1 "exec $(type -P sshd) -D -e -f $tmp/sshd" >"$tmp/sshd.log" 2>&1
server=$!
ok "sshd listens" wait_for 60 listens 1 2022 || diag <"$tmp/sshd.log"
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
