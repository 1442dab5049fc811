#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The guest's part of scripts/bench programs, in VM 0: programs as they are, their
# servers in VM 1, over TCP, SMC-R and rdmastream in turn, ROUNDS times over.
#
# usage: programs.sh ROUNDS SECONDS PROGRAM...    SECONDS: of one measurement, about
#        programs.sh --serve PROGRAM WAY PORT     what it starts in VM 1
#
# From the environment: MODULE, TOOLS (rsctl), BIN (rs_bench, smc_setup, smc_preload.so).
# Writes $RESULTS/results:
#	setting NAME VALUE
#	result WAY NAME VALUE		once a round; more is better
#	proof WAY TEXT			once a program and round
#	missing WAY TEXT		what could not be measured, and why
# shellcheck source=selftests/bench/lib.sh
. "$(dirname "$0")/lib.sh"

# WAY: sets $by, what a program is started by
prefix() {
	case $1 in
	tcp)	by=(env) ;;
	smc)	by=(env LD_PRELOAD="$BIN/smc_preload.so") ;;
	ours)	by=("$TOOLS/rsctl" run) ;;
	esac
}

# ---- the programs: PROGRAM_serve WAY in VM 1, PROGRAM_load WAY prints "NAME RATE" ----

limited() { timeout 60 "${by[@]}" "$@" 2>>"$tmp/err"; }

redis_serve() {
	exec "${by[@]}" redis-server --port "$port" --bind 0.0.0.0 --protected-mode no --save '' --appendonly no
}
# So many requests take some seconds where machines are emulated.
redis_load() {
	local size pipe clients n
	for size in 64 4096; do
		for pipe in 1 16; do
			for clients in 1 50; do
				n=$((seconds * 500 * (clients > 1 ? 3 : 1) * (pipe > 1 ? 4 : 1)))
				((size == 64)) || n=$((n / 2))
				limited redis-benchmark -h "$ADDR4_1" -p "$port" -t set -c $clients \
					-P $pipe -d $size -n $n --csv |
					awk -F'"' -v name="redis-$clients-$pipe-$size" '$2 == "SET" { print name, $4 }'
			done
		done
	done
}

nginx_serve() {
	mkdir -p "$tmp/nginx"
	head -c 4096 /dev/urandom >"$tmp/nginx/4K"
	cat >"$tmp/nginx/conf.$1" <<-END
		user root;
		daemon off;
		master_process off;
		pid pid.$1;
		error_log error.log;
		events { worker_connections 256; }
		http {
			access_log off;
			client_body_temp_path body;
			proxy_temp_path proxy;
			fastcgi_temp_path fastcgi;
			uwsgi_temp_path uwsgi;
			scgi_temp_path scgi;
			keepalive_requests 1000000;
			root .;
			server { listen 0.0.0.0:$port; sendfile on; }
		}
	END
	exec "${by[@]}" nginx -p "$tmp/nginx" -c "conf.$1"
}
nginx_load() {
	local url=http://$ADDR4_1:$port/4K
	limited wrk -t 1 -c 8 -d "${seconds}s" --timeout 20s "$url" |
		awk '$1 == "Requests/sec:" { print "nginx-keep", $2 }'
	limited wrk -t 1 -c 8 -d "${seconds}s" --timeout 20s -H 'Connection: close' "$url" |
		awk '$1 == "Requests/sec:" { print "nginx-short", $2 }'
}

memcached_serve() { exec "${by[@]}" memcached -u root -l 0.0.0.0 -p "$port" -t 1 -m 64; }
memcached_load() {
	limited memcslap --servers="$ADDR4_1:$port" --concurrency=4 --execute-number=$((seconds * 400)) --test=get |
		awk '/^Time to get/ { print "memcached", $4 / $(NF - 1) }'
}

as_postgres=(setpriv --reuid=postgres --regid=postgres --clear-groups)
postgres_serve() {
	local bin=(/usr/lib/postgresql/*/bin)
	mkdir "$tmp/data"
	chown postgres "$tmp/data"
	"${as_postgres[@]}" "${bin[-1]}/initdb" -D "$tmp/data" -A trust -N >/dev/null || return
	echo 'host all all 0.0.0.0/0 trust' >>"$tmp/data/pg_hba.conf"
	exec "${by[@]}" "${as_postgres[@]}" "${bin[-1]}/postgres" -D "$tmp/data" -h 0.0.0.0 -p "$port" \
		-k '' -F -c max_connections=20 -c shared_buffers=16MB
}
postgres_load() {
	local bin=(/usr/lib/postgresql/*/bin)
	bench() { limited "${bin[-1]}/pgbench" -U postgres -h "$ADDR4_1" -p "$port" -n "${@:2}" postgres; }
	bench "$1" -i -I dtg -q >/dev/null || return
	bench "$1" -S -c 4 -T "$seconds" | awk '$1 == "tps" { print "pgbench", $3 }'
	bench -n -S -C -c 4 -T "$seconds" | awk '$1 == "tps" { print "pgbench-short", $3 }'
}

iperf3_serve() { exec "${by[@]}" iperf3 -s -p "$port"; }
iperf3_load() {
	limited iperf3 -c "$ADDR4_1" -p "$port" -t "$seconds" -J |
		jq -r '"iperf3 \(.end.sum_received.bits_per_second / 8e6)"'
}

sockperf_serve() { exec "${by[@]}" sockperf server --tcp -i 0.0.0.0 -p "$port"; }
sockperf_load() {
	limited sockperf ping-pong --tcp -i "$ADDR4_1" -p "$port" -m 64 -t "$seconds" |
		sed 's/\x1b\[[0-9;]*m//g' | awk '/Summary: Latency is/ { print "sockperf", 1e6 / 2 / $(NF - 1) }'
}

# The bench's own load, to compare with the two before.
declare -A kind=([tcp]=tcp [smc]=smc [ours]=ours)
rs_bench_serve() { exec "$BIN/rs_bench" -s -k "${kind[$1]}" -p "$port"; }
rs_bench_load() {
	timeout 60 "$BIN/rs_bench" -c "$ADDR4_1" -k "${kind[$1]}" -p "$port" -t $((seconds * 200)) 2>>"$tmp/err" |
		awk '$1 == "rtt-64" { print "rs_bench-rtt", 1e6 / $2 } $1 == "stream-64K" { print "rs_bench-stream", $2 }'
}

# ---- what shows that a way was taken ----

counters() {	# WAY
	case $1 in
	smc)	"$BIN/smc_setup" stats ;;
	ours)	our_counters 0 ;;
	esac
}

proof() {	# WAY
	local ring tcp
	case $1 in
	tcp)	echo "no preload" ;;
	smc)	ring=$(($(grown tx-bytes) + $(grown rx-bytes)))
		echo "by SMC-R $ring bytes"
		((ring > 16384)) ;;
	ours)	ring=$(($(grown ring-tx-bytes) + $(grown ring-rx-bytes)))
		tcp=$(($(grown tcp-tx-bytes) + $(grown tcp-rx-bytes)))
		echo "by RDMA $ring bytes, by TCP $tcp"
		((ring > 16384)) ;;
	esac
}

# ---- all ----

if [ "$1" = --serve ]; then
	port=$4
	# whatever user a server becomes must be able to read what it is preloaded with
	chmod 755 "$tmp"
	cp "$BIN"/{rs_bench,*.so} "$TOOLS"/{rsctl,*.so} "$tmp"
	BIN=$tmp TOOLS=$tmp
	prefix "$3"
	"$2_serve" "$3"
	exit
fi
rounds=$1 seconds=$2
shift 2
results=${RESULTS:?}/results
tell() { echo "$*" >>"$results"; }

measure() {	# PROGRAM WAY
	local shown
	counters "$2" >"$tmp/before"
	port=${ports[$2]} "$1_load" "$2" >"$tmp/out"
	counters "$2" >"$tmp/after"
	if [ ! -s "$tmp/out" ]; then
		tell "missing $2 $1 in round $round: $(tail -qn 2 "$tmp/err" "$tmp/$1.$2" | tr '\n' ' ')"
	elif ! shown=$(proof "$2"); then
		tell "missing $2 $1 in round $round: this is not what carried it: $shown"
	else
		tell "proof $2 $1: $shown"
		sed "s/^/result $2 /" "$tmp/out" >>"$results"
	fi
}

: >"$results"
tell "setting kernel $(uname -r)"
tell "setting mtu $(cat /sys/class/net/eth0/mtu)"
load_module || exit
in_all sysctl -q -w net.rdmastream.link_idle_ms=600000
why=$(smc_up) || tell "missing smc cannot be set up: $why"

declare -A ports=()
port=7400
for program; do
	servers=()
	for way in tcp smc ours; do
		ports[$way]=$((port++))
	done
	for way in tcp smc ours; do
		on_bg 1 "$0" --serve "$program" $way "${ports[$way]}" >"$tmp/$program.$way" 2>&1
		servers+=($!)
	done
	for way in tcp smc ours; do
		wait_for 120 listens 1 "${ports[$way]}" || tell "missing $way $program: no listener"
	done
	for ((round = 1; round <= rounds; round++)); do
		for way in tcp smc ours; do
			echo "# $program, round $round: $way"
			prefix $way
			: >"$tmp/err"
			measure "$program" $way
		done
	done
	kill "${servers[@]}" 2>/dev/null
	wait "${servers[@]}" 2>/dev/null
done
rm -rf "$tmp"
