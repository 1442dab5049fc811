#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=2 kernels=6.12,6.1,debug timeout=400
# Unmodified programs under "rsctl run".
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"

load || bail "cannot load the module"
ok "a link comes up" want_link

redis="redis-server --port 6379 --bind 0.0.0.0 --protected-mode no --save '' --appendonly no"
on_bg 1 "exec rsctl run $redis" >/dev/null
server=$!
ok "redis-server listens" wait_for 20 listens 1 6379
mark 0
cli() { [ "$(timeout 20 "$@" -h "$ADDR4_1" get greeting)" = hello ]; }
ok "redis-cli over rdmastream" timeout 20 rsctl run redis-cli -h "$ADDR4_1" set greeting hello
ok "redis-cli over rdmastream: the value is set" cli rsctl run redis-cli
ok "redis-cli over plain TCP to the same server" cli redis-cli
ok "redis-benchmark" timeout 60 rsctl run redis-benchmark -h "$ADDR4_1" -t set,get -n 2000 -c 10 -d 4096 -q
ok "its data used RDMA" test "$(grown 0 ring-tx-bytes)" -gt 1000000
kill $server

on_bg 1 rsctl run iperf3 -s >/dev/null
server=$!
ok "iperf3 listens" wait_for 20 listens 1 5201
for more in "" "-R" "-P 4"; do
	mark 0
	# shellcheck disable=SC2086
	ok "iperf3 $more" timeout 40 rsctl run iperf3 -c "$ADDR4_1" -t 3 $more
	ok "its data used RDMA" \
		test $(($(grown 0 ring-tx-bytes) + $(grown 0 ring-rx-bytes))) -gt 1000000
done
kill $server
ok "no socket remains" wait_for 20 no_sockets
done_testing
