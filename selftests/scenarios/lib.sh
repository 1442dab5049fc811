# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
# For the scenarios, which run in VM 0.  From the environment: MODULE (the .ko),
# TOOLS (rsctl and the preload library), BIN (the test programs).
set -u
: "${MODULE:?}" "${TOOLS:?}" "${BIN:?}"
export PATH=$TOOLS:$BIN:$PATH
# shellcheck source=/dev/null
. "$LAB"

# A fork takes some 50 ms of a guest's time, starting bash twice that: what is called often does
# without.

export tmp
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
for ((vm = 1; vm < VM_COUNT; vm++)); do on $vm mkdir -p "$tmp"; done

bail() {
	echo "Bail out! $*"
	exit 1
}

set_net() {	# NAME=VALUE...: settings, in every VM
	in_all sysctl -q -w "${@/#/net.rdmastream.}" || bail "cannot set $*"
}

# A probe that is answered within half a second elsewhere may take four on a slow kernel:
# 3 more is eight times as long.
patience() {	# ACK-TIMEOUT
	local ack=$1
	[ "$SLOW" = 1 ] || [ "$ack" -gt 17 ] || ack=$((ack + 3))
	set_net ack_timeout="$ack"
}

# Loads the module in all VMs.  A VM on a busy machine may stall for a second; that must not
# break its links.
load() {	# [ACK-TIMEOUT [STALL-MS]]
	load_module && patience "${1:-18}" &&
		set_net link_stall_ms="$((${2:-10000} * SLOW))" ring_idle_ms="$((5000 * SLOW))"
}

# Ways in which data can travel.
use() {		# raw|prelude|tcp|ring
	case $1 in
	raw)	set_net negotiate=0 ;;
	prelude)	set_net negotiate=1 ring_mode=0 prelude=1 ;;
	tcp)	set_net negotiate=1 ring_mode=0 prelude=0 ;;
	ring)	set_net negotiate=1 ring_mode=1 ;;
	esac
}

# All counters and reasons of a VM: lines that begin with name and value.
counters() {	# VM
	on "$1" rsctl -s -o stats
}

counter() {	# VM NAME
	counters "$1" | value "$2"
}

# Changes since "mark", as the same lines.
mark() { counters "$1" >"$tmp/mark.$1"; }	# VM
growth() {	# VM
	counters "$1" | awk 'NR == FNR { old[$1] = $2; next } { printf "%s %.0f\n", $1, $2 - old[$1] }' "$tmp/mark.$1" -
}
grown() {	# VM NAME...: a line of numbers
	counters "$1" | awk -v names="${*:2}" '
		{ n[$1] = $2 - n[$1] }
		END {
			count = split(names, name, " ")
			for (i = 1; i <= count; i++)
				printf "%.0f%s", n[name[i]], i < count ? " " : "\n"
		}' "$tmp/mark.$1" -
}

addr() {	# KIND VM
	local name=ADDR4_$2
	[[ $1 != *6 ]] || name=ADDR6_$2
	echo "${!name}"
}

# Ports of servers; scenarios that run in parallel use a part of the range.
first_port=7000 ports=20000

# An unused path in $tmp; with $RANDOM alone, names would collide now and then.
fresh() { echo "$tmp/$1.$SRANDOM"; }

# rs_stream from one VM to another and back; both must succeed.
stream_between() {	# VM VM SERVER_KIND CLIENT_KIND [OPTION...]
	local at=() vm=$2 server=$3 client=$4 pid status=0 to=ADDR4_$2 port=$((first_port + RANDOM % ports))
	[ "$1" = 0 ] || at=(on "$1")
	shift 4
	[[ $server != *6 ]] || to=ADDR6_$vm
	on_bg "$vm" rs_stream -s -k "$server" -p $port "$@"
	pid=$!
	"${at[@]}" rs_stream -c "${!to}" -k "$client" -p $port --wait "$@" || status=1
	wait $pid || status=1
	return $status
}
stream() { stream_between 0 1 "$@"; }	# SERVER_KIND CLIENT_KIND [OPTION...]

# The same in the background, with files in $tmp of both VMs; sets client, server.
begin_streams() {	# [OPTION...]
	local port=$((first_port + RANDOM % ports))
	on_bg 1 rs_stream -s -k inet -p $port "$@" >"$tmp/server"
	server=$!
	rs_stream -c "$ADDR4_1" -k inet -p $port --wait "$@" >"$tmp/client" &
	client=$!
}

gone() { ! kill -0 "$1" 2>/dev/null; }

content() {	# PID FILE: rs_stream's
	wait_for 160 gone "$1"
	cat "$2"
	grep -q '"ok":true' "$2"
}

equal_ends() {
	jq -es '.[0].tx_bytes == .[1].rx_bytes and .[1].tx_bytes == .[0].rx_bytes' "$tmp/client" "$tmp/server"
}

whole_streams() {	# NAME
	ok "$1: the client's streams are complete" content "$client" "$tmp/client"
	ok "$1: the server's streams are complete" content "$server" "$tmp/server"
	ok "$1: both ends have the same number of bytes" equal_ends
	kill "$client" "$server" 2>/dev/null
	wait "$client" "$server" 2>/dev/null
}

# What a VM's counters must say about the bytes sent and received since "mark".
assert_carrier() {	# raw|tcp|ring VM SENT RCVD
	growth "$2" | awk -v how="$1" -v vm="$2" -v sent="$3" -v rcvd="$4" '
		{ n[$1] = $2 }
		END {
			tx = n["tcp-tx-bytes"]; rx = n["tcp-rx-bytes"]
			ring_tx = n["ring-tx-bytes"]; ring_rx = n["ring-rx-bytes"]
			printf "VM %d: sent %d tcp %d ring, received %d tcp %d ring; wanted %s %d %d\n",
				vm, tx, ring_tx, rx, ring_rx, how, sent, rcvd
			if (how == "raw")
				good = !(tx + rx + ring_tx + ring_rx)
			else if (how == "tcp")
				good = tx == sent && rx == rcvd && !(ring_tx + ring_rx)
			else	# none lost, none twice, and some by RDMA
				good = tx + ring_tx == sent && rx + ring_rx == rcvd &&
				       ring_tx && ring_rx
			exit !good
		}'
}

# Some stream of each VM has a ring each way.
have_rings() {
	local vm sockets each ring='\{[^{}]*"ring_size":[1-9]'
	for vm in 0 1; do
		sockets=$(on $vm rsctl -j sockets) || return
		while read -r each; do
			[[ ! $each =~ \"tx\":$ring.*\"rx\":$ring ]] || continue 2
		done <<<"${sockets//'{"local"'/$'\n'}"
		return 1
	done
}

# That many streams of each VM have a ring each way.
all_on_rings() {	# STREAMS
	local vm
	for vm in 0 1; do
		on $vm rsctl -j sockets |
			jq -e --argjson n "$1" 'map(select(.tx.carrier == "ring" and .rx.carrier == "ring")) |
				length == $n' >/dev/null || return
	done
}

go_with_rings() {	# FILE: rs_stream's --hold
	wait_for 40 test -e "$1.held"
	wait_for 20 have_rings
	: >"$1"
	on 1 touch "$1"
}

# A stream of $BYTES each way that must use the given carrier.  It pauses until there are
# rings, so that it does not end before.
carried() {	# raw|tcp|ring BYTES SERVER_KIND CLIENT_KIND [OPTION...]
	local how=$1 bytes=$2 till=()
	shift 2
	mark 0
	if [ "$how" = ring ]; then
		till=(--hold-at 4K --hold "$tmp/go.$SRANDOM")
		go_with_rings "${till[3]}" &
	fi
	stream "$1" "$2" -t 60 -n "$bytes" "${till[@]}" "${@:3}" &&
		assert_carrier "$how" 0 "$bytes" "$bytes"
}

# Reports the TAP of a program on standard input as cases of the scenario.  No process is
# started for a case, because in a guest that takes longer than most cases.
retell() {	# NAME
	local line plan=''
	while read -r line; do
		case $line in
		"ok "*)		tap_result 0 "$1: ${line#*- }" ;;
		"not ok "*)	tap_result 1 "$1: ${line#*- }" ;;
		1..*)		plan=$line ;;
		"TAP version"*)	;;
		*)		echo "# ${line#\# }" ;;
		esac
	done
	ok "$1: has ended" test -n "$plan"
}

# No sockets except listeners.
no_streams() { ! in_all rsctl -j sockets | grep '"mode"' | grep -qv '"listen"'; }
no_sockets() { ! in_all rsctl -j sockets | grep -q '"mode"'; }

has_link() {	# VM
	on "$1" rsctl -j links | grep -q '"state":"up"'
}

have_links() { has_link 0 && has_link 1; }
no_link() { ! has_link "$1"; }	# VM
no_links() { no_link 0 && no_link 1; }

# Links that flap are established ever less often; a drain by the administrator resets
# that.
hurry() { in_all rsctl drain off >/dev/null; }

# In the kernel's log.  "allocations fail from here on", "... fail no more": until then the judge
# accepts the kernel's messages about that.
say() { echo "lab: $*" >/dev/kmsg; }

# The VM of the two that makes their links; VM 1 has some, and none with itself.
maker() { on 1 rsctl -j links | jq 'if .[0].active then 1 else 0 end'; }

# Waits for a link between the two, so that a short stream does not have to.
want_link() {	# [SECONDS]
	use ring
	hurry
	want_link_between 0 1 "${1:-30}" have_links && return
	in_all rsctl links
	in_all rsctl peers
	in_all rsctl stats
	return 1
}
# Likewise between any VMs, or from one to itself, until CMD succeeds.  The stream that asks for the
# link lasts until then: a request that names a connection which has ended is refused.
want_link_between() {	# VM VM SECONDS CMD...
	local hold pid status=0
	hold=$(fresh link)
	stream_between "$1" "$2" inet inet -n 2 --hold-at 1 --hold "$hold" -t 100 &
	pid=$!
	wait_for "${@:3}" || status=1
	in_all touch "$hold"
	wait $pid || status=1
	return $status
}
