# shellcheck shell=bash disable=SC2034,SC2154	# shared with scenarios/engines.sh and the engines
# SPDX-License-Identifier: GPL-2.0-only
# What the engines share.  scenarios/engines.sh sources it, and one engine.
#
# An engine is a file NAME.sh here, whose third line describes it, and which sets
#   needs      Debian packages, in one line
#   limit      time limit of the run, seconds, in one line
#   memory     MiB of each guest, in one line (1024)
#   least      bytes that its load must move by RDMA in each guest
#   alone      yes: only one way at a time can have members
#   settings   of the module, if its page recommends some: an array of NAME=VALUE
# and defines the functions
#   engine_unfit    print why it cannot run here, if so
#   engine_start    start the members, one or more in each guest
#   engine_load     a load to be measured: prints "NAME VALUE" lines, where more is better
#   engine_work GO PROGRESS
#                   a checked load until the file GO is there; writes a line into PROGRESS now and
#                   then, the number of requests so far; fails if a request has
#   engine_change   members change their roles while the load runs, before RDMA is cut
#   engine_verify   all data is there, and the same everywhere
#   engine_state    print what must not change while RDMA is lost
#   engine_stop     end the members
# Those use
#   start_in VM NAME COMMAND-LINE
#   $way    tcp, smc or ring; "${by[@]}" is what programs are started with
#   $port   the first of 100 ports of this way
#   $home   a directory in each guest, of this way
#   $log    a directory that all guests share

engine_unfit() { :; }
engine_verify() { :; }
engine_state() { connections; }
engine_stop() { stop_members; }

declare -A members=()

use_way() {	# WAY
	way=$1 home=$tmp/$1
	case $way in
	tcp)	port=7000 by=(env) ;;
	smc)	port=7100 by=(env LD_PRELOAD="$tmp/smc_preload.so") ;;
	ring)	port=7200 by=("$tmp/rsctl" run) ;;
	esac
	in_all mkdir -p "$home"
}

# A member in a guest, in the background.  Its output is in $log/WAY.NAME.VM.
start_in() {	# VM NAME COMMAND-LINE
	on_bg "$1" "cd $home; exec ${by[*]} $3 >$log/$way.$2.$1 2>&1" >/dev/null 2>&1
	members[$way]+=" $!"
}

# As "ok", but in this shell, whose background jobs and variables remain.
ok_here() {	# NAME CMD...
	local name=$1 status=0
	shift
	"$@" >"$tmp/out" 2>&1 || status=$?
	tap_result $status "$name" && return
	tail -n 40 "$tmp/out" | diag
	return 1
}

stop_members() {
	local pid
	# shellcheck disable=SC2086
	kill ${members[$way]-} 2>/dev/null
	for pid in ${members[$way]-}; do
		wait_for 30 gone "$pid" || return
	done
	members[$way]=''
}

tell_logs() {	# the ends of what the members of this way have said
	local file
	for file in "$log/$way".*; do
		[ -s "$file" ] || continue
		echo "== ${file##*/}"
		tail -n 6 "$file"
	done | cut -c 1-200 | diag
}

measure() {	# FILE
	engine_load >"$1" && [ -s "$1" ]
}

# ---- SMC-R ----

smc_up() {
	if ! in_all modprobe -q smc; then
		echo "no SMC in this kernel"
		return 1
	fi
	in_all cp "$BIN/smc_preload.so" "$tmp" && in_all "$BIN/smc_setup" add eth0 rxe0
}

smc_bytes() {
	"$BIN/smc_setup" stats | awk '/[tr]x-bytes/ { n += $2 } END { printf "%.0f\n", n }'
}

# ---- what carried the data ----

note_counters() {
	local vm
	for ((vm = 0; vm < VM_COUNT; vm++)); do mark $vm; done
}

# Percentage of the stream bytes since "mark" that went by rings.
share() {	# VM
	growth "$1" | awk '/^ring-[tr]x-bytes / { ring += $2 } /^tcp-[tr]x-bytes / { tcp += $2 }
		END { printf "%.1f\n", 100 * ring / (ring + tcp + !(ring + tcp)) }'
}

# Connections to other guests that have data in rings, of one guest, as JSON.
on_rings() {	# VM
	on "$1" rsctl -j sockets | jq -c '[.[] | select(.remote != null and .mode == "framed") |
		select(.tx.carrier == "ring" and .tx.ring_bytes > 0 or .rx.carrier == "ring" and .rx.ring_bytes > 0)]'
}

# Each guest has such connections with each other guest.
members_on_rings() {
	local vm other
	for ((vm = 0; vm < VM_COUNT; vm++)); do
		on_rings $vm >"$tmp/rings.$vm"
		for ((other = 0; other < VM_COUNT; other++)); do
			[ $vm != $other ] && wanted_pair $vm $other || continue
			addr inet $other | jq -Re --slurpfile sockets "$tmp/rings.$vm" \
				'. as $a | any($sockets[][]; .remote | test("^(\\[::ffff:)?" + $a + "[]:]"))' \
				>/dev/null || return
		done
	done
}
wanted_pair() { :; }	# VM VM: do these two exchange data?  An engine may define it.

# Those between guests, as guest 0 has them.
connections() {
	on 0 rsctl -j sockets | jq -r '.[] | select(.mode == "framed") | "\(.local) \(.remote)"' | sort
}

# Those on rings, as members_on_rings has seen them last.
list_members() {
	local vm
	printf '%-24s %-24s %-5s %-5s %12s %12s\n' LOCAL REMOTE TX RX "SENT BY RING" "RCVD BY RING"
	for ((vm = 0; vm < VM_COUNT; vm++)); do
		jq -r '.[] | [.local, .remote, .tx.carrier, .rx.carrier, .tx.ring_bytes, .rx.ring_bytes] | @tsv' "$tmp/rings.$vm" |
			awk -F'\t' '{ printf "%-24s %-24s %-5s %-5s %12s %12s\n", $1, $2, $3, $4, $5, $6 }' | sort | head -n 10
	done
}

# ---- RDMA is lost ----

no_rings() {
	local vm
	for ((vm = 0; vm < VM_COUNT; vm++)); do
		on $vm rsctl -j sockets |
			jq -e 'all(.[]; .tx.carrier != "ring" and .rx.carrier != "ring")' >/dev/null || return
	done
}

back_on_rings() {
	local vm
	members_on_rings || return
	for ((vm = 0; vm < VM_COUNT; vm++)); do
		[ "$(grown $vm links-up)" -gt 0 ] && [ "$(grown $vm ring-rx-bytes)" -gt 0 ] || return
	done
}

requests() { tail -n 1 "$progress" | grep -E '^[0-9]+$' || echo 0; }
more_than() { [ "$(requests)" -gt "$1" ]; }

cut_and_back() {
	local vm n since
	note_counters
	n=$(requests)
	"${0%/*}/loss.sh" drop
	since=$SECONDS
	ok "RDMA is cut: all streams continue over TCP" wait_for 20 no_rings
	for ((vm = 0; vm < VM_COUNT; vm++)); do
		ok "RDMA is cut: guest $vm has lost $(grown $vm links-lost) links, and $(grown $vm resumes) streams resumed" \
			test "$(grown $vm links-lost)" -gt 0
	done
	n=$(requests)
	ok "RDMA is cut: requests are answered" wait_for 30 more_than "$n"
	# the outage is to be longer than what the members are patient for
	while ((SECONDS - since < ${outage:-6})); do sleep 0.2; done
	n=$(requests)
	note_counters
	"${0%/*}/loss.sh" pass
	since=$SECONDS
	ok "RDMA is back: members are connected by rings again" wait_for 90 back_on_rings ||
		in_all rsctl -o links | diag
	diag "after $((SECONDS - since)) s"
	list_members | diag
	ok "RDMA is back: requests are answered" wait_for 30 more_than "$n"
}

# The median of each figure on each way, and how much that is of TCP's.
ratios() {
	sort -k1,2 -k3,3g "$log/measured" | awk '
		{ n[$1, $2]++; v[$1, $2, n[$1, $2]] = $3; ways[$1]; if (!($2 in seen)) { seen[$2]; names[++count] = $2 } }
		function median(way, name,  k) {
			k = n[way, name]
			return k % 2 ? v[way, name, (k + 1) / 2] : (v[way, name, k / 2] + v[way, name, k / 2 + 1]) / 2
		}
		END {
			printf "%-24s %12s %12s %6s %12s %6s\n", "", "TCP", "rings", "", "SMC-R", ""
			for (i = 1; i <= count; i++) {
				name = names[i]
				t = median("tcp", name)
				printf "%-24s %12.4g", name, t
				split("ring smc", w, " ")
				for (k = 1; k <= 2; k++)
					if (n[w[k], name])
						printf " %12.4g %6.2f", median(w[k], name), t ? median(w[k], name) / t : 0
					else
						printf " %12s %6s", "-", "-"
				print ""
			}
		}'
}
