#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=2 kernels=6.12,6.1,debug timeout=900
# Mixed traffic for a long time, while links are lost for all kinds of reasons at random times.
# Every byte is checked.  "make soak" sets SOAK_SECONDS and SOAK_SEED.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"
loss=$(dirname "$0")/loss.sh

seconds=${SOAK_SECONDS:-120}
seed=${SOAK_SEED:-$((RANDOM * 32768 + RANDOM))}
RANDOM=$seed
diag "seed $seed, $seconds s: make soak SECONDS=$seconds SEED=$seed"

load 14 1500 || bail "cannot load the module"
# short timeouts: dead links are noticed soon, and idle connections do not pile up
set_net ring_mode=1 hello_timeout_ms=20000

picked=''
one_of() {	# WORD...: one of them, in $picked
	shift $((RANDOM % $#))
	picked=$1
}

# ---- loss ----

cut_once() {
	local vm=$((RANDOM % 2)) where
	one_of 0 1 "0 1"
	where=$picked
	# interfaces stay up, because otherwise connect() fails with plain TCP, too
	one_of drop drop drop del del unload drop-all drop-all
	echo "$SECONDS s: $picked in VM $where" >>"$tmp/cuts"
	# shellcheck disable=SC2086
	case $picked in
	drop)	"$loss" drop $where; sleep $((RANDOM % 8)); "$loss" pass $where ;;
	del)	"$loss" del $where; sleep $((RANDOM % 4)); "$loss" add $where ;;
	unload)	"$loss" unload $vm; sleep $((RANDOM % 4)); "$loss" load $vm ;;
	drop-all)	"$loss" drop-all $vm; sleep $((RANDOM % 4)); "$loss" pass $vm ;;
	esac
}

cutter() {
	RANDOM=$((seed + 1))
	until [ -e "$tmp/stop" ]; do
		# when there is something to lose, or not
		wait_for $((RANDOM % 40)) has_link $((RANDOM % 2))
		sleep 0.$((RANDOM % 10))
		cut_once
	done
}

# ---- traffic ----

evidence() {	# PORT: what is there of a server that its client has left in discord
	echo "--- after $SECONDS s, port $1; cuts so far:"
	tail -n 4 "$tmp/cuts"
	for vm in 0 1; do
		echo "--- VM $vm"
		on $vm ss -Htanoi "( sport = :$1 or dport = :$1 )"
		on $vm rsctl -d sockets | grep -A 6 -E ":$1( |$)"
		counters $vm | grep -E '^(reason|resets|framed|fallbacks|passive|active|plain)'
	done
}

failures=0
failed() {	# WHAT FILE
	failures=$((failures + 1))
	echo "not well after $SECONDS s: $1"
	tr '\r' '\n' <"$2" | tail -n 3
}

a_stream() {	# NUMBER
	local server client n m least shape=()
	one_of "inet inet" "rds4 inet" "inet rds4" "inet6 inet6" "rds6 inet6" "rds6 rds6"
	read -r server client <<<"$picked"
	n=$((1 << (10 + RANDOM % 13))) m=$((1 << (10 + RANDOM % 13)))
	# a stream in single bytes is slow by TCP, too
	least=$(((n > m ? n : m) >> 12))
	shape=(-S "$RANDOM" -C "$((1 + RANDOM % 8))" -t 400 -n "$n" -m "$m"
		-w "$((1 + least + RANDOM * 8))" -r "$((1 + least + RANDOM * 8))")
	one_of "" "" "" "-e" "--half-close" "--first server" "--first client" \
		"--read-delay $((RANDOM % 5000))"
	# shellcheck disable=SC2206
	shape+=($picked)
	if [ "$picked" != -e ]; then
		one_of plain iov splice sendfile zerocopy
		shape+=(-W "$picked")
		one_of plain iov splice peek waitall
		shape+=(-R "$picked")
	fi
	what="stream $server $client ${shape[*]}"
	stream "$server" "$client" "${shape[@]}"
}

a_storm() {
	local pid status=0 port=$((first_port + RANDOM % ports)) n=$((10 + RANDOM % 100))
	one_of close byte rst unread
	what="storm $picked $n"
	on_bg 1 rs_storm -s -k inet -p $port -n $n -t 300
	pid=$!
	wait_for 60 listens 1 $port || status=1
	rs_storm -c "$ADDR4_1" -k inet -p $port -n $n -t 300 -m $picked || {
		status=1
		evidence $port >>"$tmp/evidence"
	}
	wait $pid || status=1
	return $status
}

redis() {
	what="redis-benchmark"
	# a slow kernel answers ten a second
	timeout $((400 * SLOW)) rsctl run redis-benchmark -h "$ADDR4_1" -t set,get \
		-n $(((100 + RANDOM % 2000) / (SLOW * SLOW))) \
		-c $((1 + RANDOM % 8)) -d $((1 + RANDOM % 9000)) -q
}

worker() {	# NUMBER
	local out=$tmp/worker.$1 jobs=0 failures=0
	RANDOM=$((seed + 100 * $1))
	first_port=$((7000 * $1)) ports=7000
	until ((SECONDS >= seconds)); do
		what=''
		if ((RANDOM % 4 == 0)); then
			a_storm
		elif ((RANDOM % 5 == 0)) && [ -n "$redis" ]; then
			redis
		else
			a_stream
		fi >"$out" 2>&1 || failed "$what" "$out" >>"$tmp/failed"
		jobs=$((jobs + 1))
	done
	echo "$jobs $failures" >"$tmp/done.$1"
}

redis=$(command -v redis-benchmark redis-server | tail -n 1)
if [ -n "$redis" ]; then
	on_bg 1 "exec rsctl run redis-server --port 6379 --bind 0.0.0.0 --protected-mode no --save '' --appendonly no" >/dev/null
	redis=$!
	wait_for 60 listens 1 6379
fi
mark 0
mark 1
cutter 2>"$tmp/cutter" &
cutter=$!
workers=()
for n in 1 2 3; do
	worker $n &
	workers+=($!)
done
wait "${workers[@]}"
touch "$tmp/stop"
wait $cutter

jobs=0 failures=0
for n in 1 2 3; do
	if read -r j f <"$tmp/done.$n"; then
		jobs=$((jobs + j)) failures=$((failures + f))
	else
		failures=$((failures + 1))
	fi
done
cuts=$(wc -l <"$tmp/cuts")
[ -z "$redis" ] || kill "$redis"
[ -z "$redis" ] || wait "$redis" 2>/dev/null
ok "all jobs succeeded" test $failures = 0
for file in "$tmp/failed" "$tmp/evidence"; do
	[ ! -s "$file" ] || diag <"$file"
done
ok "links were lost" test "$(grown 0 links-lost)" -gt 0
ok "streams survived this" test "$(($(grown 0 resumes) + $(grown 1 resumes)))" -gt 0
ok "no socket remains" wait_for 150 no_sockets
for vm in 0 1; do
	growth $vm | awk -v vm=$vm '
		{ n[$1] = $2 }
		/^reason:/ && $2 { why = why " " substr($1, 8) "=" $2 }
		END {
			printf "VM %d: by TCP %.0f bytes sent, %.0f received; by rings %.0f, %.0f\n", vm,
				n["tcp-tx-bytes"], n["tcp-rx-bytes"], n["ring-tx-bytes"], n["ring-rx-bytes"]
			printf "VM %d: links up %d, lost %d, failed %d; resumes %d, resent %d bytes; resets %d;%s\n", vm,
				n["links-up"], n["links-lost"], n["links-failed"], n["resumes"],
				n["resent-bytes"], n["resets"], why
		}' | diag
done
diag "$jobs jobs, $cuts cuts, $failures failures; seed $seed"
ok "the module can be unloaded" wait_for 40 unload_module
done_testing
