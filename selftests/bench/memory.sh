#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The guest's part of scripts/bench memory, in VM 0: what connections to VM 1 have
# registered with the RDMA device, memory that is pinned.
#
# usage: memory.sh CONNECTIONS
#
# From the environment: MODULE, TOOLS (rsctl), BIN (rs_bench, smc_setup).  Writes
# $RESULTS/results:
#	setting NAME VALUE
#	connections PATH N
#	result PATH STAGE-N BYTES	of both ends
#	missing PATH TEXT		what could not be measured, and why
# shellcheck source=selftests/bench/lib.sh
. "$(dirname "$0")/lib.sh"
conns=$1

results=${RESULTS:?}/results
tell() { echo "$*" >>"$results"; }

declare -A kind=([rsockets]=tcp [smc]=smc [ours]=ours)

registered() {	# in all VMs
	in_all rdma -j res show mr | jq -s 'map(.[].mrlen // 0) | add // 0'
}

measure() {	# PATH N
	local path=$1 n=$2 stage server client status=0
	load_of "$path" 7500
	on_bg 1 "${load[@]}" -s 2>"$tmp/server"
	server=$!
	if [ "$path" = rsockets ]; then
		wait_for 20 eval "on 1 rdma res show cm_id | grep -q LISTEN"
	else
		wait_for 20 listens 1 7500
	fi || tell "missing $path no listener"
	mkfifo "$tmp/go"
	"${load[@]}" -c "$ADDR4_1" -n "$n" -t 250 -w <"$tmp/go" >"$tmp/out" 2>"$tmp/err" &
	client=$!
	exec 7>"$tmp/go"
	echo >&7	# it is ready
	for stage in open moved streamed; do
		if ! wait_for 60 grep -q "^$stage" "$tmp/out"; then
			tell "missing $path $n connections, $stage: $(tail -qn 1 "$tmp/err" "$tmp/server" | tr '\n' ' ')"
			status=1
			break
		fi
		tell "result $path $stage-$n $(registered)"
		if [ $stage = streamed ]; then	# what nobody uses is given back, by some
			sleep $((idle_ms / 1000 + 4))
			tell "result $path rested-$n $(registered)"
		fi
		echo >&7
	done
	exec 7>&-
	[ $status = 0 ] || kill $client
	wait $client || status=1
	kill $server
	wait $server 2>/dev/null
	rm "$tmp/go"
	return $status
}

: >"$results"
tell "setting kernel $(uname -r)"
load_module || exit
# no link shall be there before, nor end meanwhile
in_all sysctl -q -w net.rdmastream.link_idle_ms=3000
why=$(smc_up) || tell "missing smc cannot be set up: $why"

links_gone() {
	[ "$(on "$1" "$TOOLS/rsctl" -j links | jq length)" = 0 ]
}
idle_ms=$(sysctl -n net.rdmastream.ring_idle_ms)
# SMC-R keeps what it had, so it comes last
for path in ours rsockets smc; do
	more=$conns
	# it was seen to stand still with 16
	[ $path != rsockets ] || ((more < 8)) || more=8
	tell "connections $path $more"
	tell "result $path before $(registered)"
	for n in 1 "$more"; do
		echo "# $path, $n"
		measure $path "$n"
		wait_for 60 links_gone 0 && wait_for 60 links_gone 1
	done
done
rm -rf "$tmp"
