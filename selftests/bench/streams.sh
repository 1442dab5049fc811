#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The guest's part of "scripts/bench streams", in VM 0: every way of carrying a stream to VM 1,
# RDMA writes without a stream and perftest, one after the other, ROUNDS times over.
#
# usage: streams.sh ROUNDS MS [PATH...]    MS: time of one measurement
#
# From the environment: MODULE, FLOOR (rs_floor.ko), TOOLS (rsctl), BIN (rs_bench,
# smc_setup); perhaps CROWDS, numbers of connections at once.  Writes $RESULTS/results:
#	setting NAME VALUE
#	result PATH NAME VALUE		once a round
#	proof PATH TEXT			once a round
#	missing PATH TEXT		what could not be measured, and why
# shellcheck source=selftests/bench/lib.sh
. "$(dirname "$0")/lib.sh"
rounds=$1 ms=$2
shift 2
streams=(tcp rsockets smc ours-tcp ours-ring to-tcp from-tcp)
[ $# != 0 ] || set -- "${streams[@]}" floor verbs
chosen=" $* "

results=${RESULTS:?}/results

# The GID of the IPv4 address: what rdma_cm chooses for the others.
gid=$(grep -l ffff:0a4d /sys/class/infiniband/rxe0/ports/1/gids/* 2>/dev/null | head -n 1)
gid=${gid##*/}

declare -A port=([tcp]=7300 [rsockets]=7301 [smc]=7302 [ours-tcp]=7303 [ours-ring]=7304)
declare -A kind=([tcp]=tcp [rsockets]=tcp [smc]=smc [ours-tcp]=ours [ours-ring]=ours)
# one end ours, with the other end's server
declare -A mixed=([to-tcp]=tcp [from-tcp]=ours-tcp)
port[to-tcp]=${port[tcp]} kind[to-tcp]=ours
port[from-tcp]=${port[ours-tcp]} kind[from-tcp]=tcp
declare -A gone=() server=()

tell() { echo "$*" >>"$results"; }

# give_up PATH WHY...: the path is not tried again.
give_up() {
	tell "missing $*"
	echo "# $*"
	gone[$1]=1
}

chosen() { [[ $chosen == *" $1 "* ]]; }	# PATH
wanted() { chosen "$1" && [ -z "${gone[$1]-}" ]; }	# PATH

serve() {	# PATH
	load_of "$1" "${port[$1]}"
	on_bg 1 "${load[@]}" -s 2>>"$tmp/$1.server"
	server[$1]=$!
}

serving() {	# PATH
	case $1 in
	rsockets)	on 1 rdma res show cm_id | grep -q ":${port[$1]}\b.*LISTEN\|LISTEN.*:${port[$1]}\b" ;;
	*)		listens 1 "${port[$1]}" ;;
	esac
}

# ---- what a path needs, and what shows that it was really taken ----

have_ours() {
	[ -e /proc/sys/net/rdmastream ] || load_module
}

# prepare PATH; what it prints is why it failed.
prepare() {
	case $1 in
	rsockets)	[ -e "$(rsockets_preload)" ] || { echo "no librspreload.so"; return 1; } ;;
	smc)		smc_up ;;
	ours-*|*-tcp)	have_ours && in_all sysctl -q -w net.rdmastream.link_idle_ms=600000 ;;
	esac
}

# Before each run: "ring_mode" counts for new connections.
choose() {	# PATH
	case $1 in
	ours-tcp)	in_all sysctl -q -w net.rdmastream.ring_mode=0 ;;
	ours-ring)	in_all sysctl -q -w net.rdmastream.ring_mode=2 ;;	# the default
	esac
}

# Bytes that the path's own counters have seen: "NAME VALUE" lines.
counters() {	# PATH
	local vm=0
	[ "$1" != from-tcp ] || vm=1	# there is our end
	case $1 in
	smc)	"$BIN/smc_setup" stats ;;
	ours-*|to-tcp|from-tcp)
		our_counters $vm ;;
	esac
}

carried_here() {	# NAME-PREFIX LEAST-PERCENT [BUT]: as carried, of what the client says
	carried "$1" "$2" "$(value sent "$tmp/out")" "$(value received "$tmp/out")" "${3-0}"
}

# A ring takes over some time after the first bytes, on a slow host later, but within
# what rs_bench sends to warm up: over 512 KiB.
on_tcp_before=$((256 << 10))

# What shows that PATH was taken.  Fails if it was not.
proof() {
	case $1 in
	tcp)		echo "plain socket(AF_INET, SOCK_STREAM, 0)" ;;
	rsockets)	echo "$(<"$tmp/qp") queue pair of rs_bench in rdma res show qp"
			[ "$(<"$tmp/qp")" != 0 ] ;;
	smc)		carried_here "" 99 ;;
	ours-tcp)	carried_here tcp- 99 && (($(grown ring-tx-bytes) == 0)) ;;
	ours-ring)	carried_here ring- 90 $on_tcp_before ;;
	to-tcp)		became raw ;;
	from-tcp)	became plain-accepts ;;
	esac
}

# ---- the streams ----

# The client waits for the end of its standard input before it closes the measured
# connection, so that one can look at it.
run_client() {	# PATH
	local status pid
	mkfifo "$tmp/hold"
	load_of "$1" "${port[$1]}"
	timeout 90 "${load[@]}" -c "$ADDR4_1" -t "$ms" -w \
		<"$tmp/hold" >"$tmp/out" 2>"$tmp/err" &
	pid=$!
	exec 7>"$tmp/hold"
	until grep -q ^received "$tmp/out" || ! kill -0 $pid 2>/dev/null; do
		sleep 0.2
	done
	rdma res show qp | grep 'type RC state RTS' | grep -c 'comm rs_bench' >"$tmp/qp"
	exec 7>&-
	wait $pid
	status=$?
	rm "$tmp/hold"
	return $status
}

measure() {	# PATH
	local path=$1 shown
	choose "$path"
	counters "$path" >"$tmp/before"
	if ! run_client "$path"; then
		wire_works || return
		give_up "$path" "failed in round $round: $(tail -qn 1 "$tmp/err" "$tmp/$path.server" | tr '\n' ' ')"
		return
	fi
	counters "$path" >"$tmp/after"
	if ! shown=$(proof "$path"); then
		give_up "$path" "this is not what carried the bytes: $shown"
		return
	fi
	tell "proof $path $shown"
	sed "/^sent\|^received/d; s/^/result $path /" "$tmp/out" >>"$results"
	[ -n "${mixed[$path]-}" ] || measure_crowds "$path"
}

# ---- many connections at once ----

# Many connections take long, so the most of them come once only.  rsockets has a
# queue pair for each.
crowds() {	# PATH
	if [ -n "${CROWDS-}" ]; then
		echo "$CROWDS"
		return
	fi
	echo 1 8 64
	[ "$1" = rsockets ] || [ "$round" != 1 ] || echo 512
}

# What shows that PATH carried the crowd.  Each connection begins on TCP, and what is
# received here is little.  512 rings are more than rmb_max has room for, so some stay
# there: it is told how many bytes were the rings'.
crowd_proof() {	# PATH N
	local percent=50
	(($2 < 512)) || percent=1
	case $1 in
	ours-ring)	carried_here ring- $percent $on_tcp_before ;;
	tcp|rsockets)	;;	# shown by the one connection
	*)		proof "$1" ;;
	esac
}

measure_crowds() {	# PATH
	local path=$1 n shown
	load_of "$path" "${port[$path]}"
	for n in $(crowds "$path"); do
		[ -z "${gone[$path-$n]-}" ] || continue
		counters "$path" >"$tmp/before"
		if ! timeout 60 "${load[@]}" -c "$ADDR4_1" -t "$ms" -n "$n" \
				</dev/null >"$tmp/out" 2>"$tmp/err"; then
			gone[$path-$n]=1
			tell "missing $path $n at once failed, or took 60 s, in round $round:" \
				"$(tail -qn 1 "$tmp/err" | tr '\n' ' ')"
			serve_again "$path" || return
			continue
		fi
		counters "$path" >"$tmp/after"
		if ! shown=$(crowd_proof "$path" "$n"); then
			gone[$path-$n]=1
			tell "missing $path $n at once: this is not what carried the bytes: $shown"
			continue
		fi
		[ -z "$shown" ] || tell "proof $path-at-once $n at once: $shown"
		sed "/^sent\|^received/d; s/^/result $path /" "$tmp/out" >>"$results"
	done
}

# The server ends, sooner or later, after a client that did not do as it should.
serve_again() {	# PATH
	wire_works || return
	kill "${server[$1]}" 2>/dev/null
	wait "${server[$1]}" 2>/dev/null
	sleep 2		# what it had not read is reset, which others shall not count
	serve "$1"
	wait_for 20 serving "$1" && return
	give_up "$1" "no listener after the failure"
	return 1
}

# ---- RDMA writes between the kernels ----

# A thread that polls all the time needs a CPU for that: soft-RoCE sends on the same ones.
floor_modes=(softirq workqueue)
(($(nproc) == 1)) || floor_modes+=(direct)

floor_by=(timeout 60)

# floor_result NAME PARAMETER...: of the modes the best; adds it to $best_modes
floor_result() {
	local name=$1 mode best
	shift
	for mode in "${floor_modes[@]}"; do
		floor_once addr="$ADDR4_1" "$@" mode="$mode" >"$tmp/out" 2>"$tmp/err" ||
			{ tell "missing floor $name, $mode, in round $round: $(tail -n 1 "$tmp/err")"
			  continue; }
		# us, or MB/s; the first column is what has to be least
		awk -v mode="$mode" '{ v[$1] = $2 }
			END { if ("bytes" in v) printf "%f %.2f", v["ns"] / v["bytes"], v["bytes"] * 1000 / v["ns"]
			      else printf "%f %.2f", v["ns"], v["ns"] / 1000
			      print "", mode }' "$tmp/out"
	done | sort -g | head -n 1 >"$tmp/best"
	read -r _ best mode <"$tmp/best" || return
	tell "result floor $name $best"
	best_modes+=" $name $mode,"
}

measure_floor() {
	local best_modes='' before
	before=$(packets_sent)
	floor_result rtt-64 op=rtt size=64 ms="$ms"
	floor_result rtt-4K op=rtt size=4096 ms="$ms"
	floor_result rtt-64K op=rtt size=65536 ms="$ms"
	floor_result stream-64K op=write size=65536 ms=$((2 * ms))
	floor_result stream-1M op=write size=$((1 << 20)) ms=$((2 * ms))
	tell "proof floor soft-RoCE sent +$(($(packets_sent) - before)) packets; best:${best_modes%,}"
}

# ---- perftest ----

perf() {	# PROGRAM SIZE COUNT: fields of the line with the results
	local cmd=(timeout 25 "$1" -F -x "$gid" -s "$2" -n "$3") pid
	on_bg 1 "${cmd[@]}" >/dev/null 2>&1
	pid=$!
	wait_for 20 listens 1 18515
	"${cmd[@]}" "$ADDR4_1" 2>"$tmp/err" | awk -v size="$2" '$1 == size'
	kill $pid 2>/dev/null
	wait $pid
}

# Sometimes it hangs: a second try, and the others go on.
perf_result() {	# NAME PROGRAM SIZE COUNT FIELD FACTOR
	local line
	line=$(perf "$2" "$3" "$4")
	[ -n "$line" ] || line=$(perf "$2" "$3" "$4")
	if [ -z "$line" ]; then
		tell "missing verbs $1 in round $round: no result within 25 s, twice" \
			"$(tail -n 1 "$tmp/err")"
		return
	fi
	awk -v field="$5" -v factor="$6" -v name="$1" \
		'{ printf "result verbs %s %.2f\n", name, $field * factor }' <<<"$line" >>"$results"
}

# ib_write_lat tells half a round trip, ib_write_bw 2^20 bytes a second.
measure_verbs() {
	perf_result rtt-64 ib_write_lat 64 200 5 2
	perf_result rtt-4K ib_write_lat 4096 150 5 2
	perf_result rtt-64K ib_write_lat 65536 50 5 2
	perf_result stream-4K ib_write_bw 4096 1000 4 1.048576
	perf_result stream-64K ib_write_bw 65536 100 4 1.048576
	perf_result stream-1M ib_write_bw $((1 << 20)) 8 4 1.048576
}

# ---- all ----

paths=()
for path in "${streams[@]}"; do
	! chosen "$path" || paths+=("$path")
done
: >"$results"
tell "setting kernel $(uname -r)"
tell "setting mtu $(cat "/sys/class/net/$net_device/mtu")"
tell "setting rounds $rounds"
tell "missing floor write 64 B, 4 KiB: a stream may join them, so messages of that size are no floor"
((${#floor_modes[@]} == 3)) ||
	tell "missing floor polling all the time: the only CPU has to send, too"
tell "missing verbs connects: perftest does not measure it"
tell "missing verbs cpu: perftest spins, so it takes all there is"

for path in "${paths[@]}"; do
	if ! why=$(prepare "$path" 2>&1); then
		give_up "$path" "cannot be set up: $why"
		continue
	fi
	[ -z "${mixed[$path]-}" ] || continue
	serve "$path"
	wait_for 20 serving "$path" ||
		give_up "$path" "no listener: $(tail -n 1 "$tmp/$path.server")"
done

# The first connection makes the link that later ones share.
for path in smc ours-ring; do
	wanted $path || continue
	choose $path
	load_of $path "${port[$path]}"
	timeout 60 "${load[@]}" -c "$ADDR4_1" -t 20 >"$tmp/out" 2>&1 </dev/null ||
		give_up $path "failed: $(tail -n 1 "$tmp/out")"
done

wire_works() {
	ping -c 3 -i 0.3 -W 3 "$ADDR4_1" >/dev/null && return
	tell "missing wire the wire between the VMs is dead since round $round"
	echo "# the wire between the VMs is dead"
	return 1
}

for path in "${!mixed[@]}"; do
	! chosen "$path" || wanted "${mixed[$path]}" ||
		give_up "$path" "no ${mixed[$path]}"
done

if chosen floor && ! why=$(in_all modprobe rdma_cm && on 1 insmod "$FLOOR" 2>&1); then
	give_up floor "cannot be loaded: $why"
fi

for ((round = 1; round <= rounds; round++)); do
	for path in "${paths[@]}"; do
		wire_works || break 2
		wanted "$path" || continue
		echo "# round $round: $path"
		measure "$path"
	done
	for path in floor verbs; do
		wanted $path || continue
		wire_works || break 2
		echo "# round $round: $path"
		measure_$path
	done
done
for pid in "${server[@]}"; do
	kill "$pid"
	wait "$pid"
done 2>/dev/null
rm -rf "$tmp"
