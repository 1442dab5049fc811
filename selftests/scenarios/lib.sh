# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
# For the scenarios, which run in VM 0.  From the environment: MODULE (the .ko),
# TOOLS (rsctl and the preload library), BIN (the test programs); VM_COUNT,
# ADDR4_N, ADDR6_N and the command "on" come from the lab.
set -u
: "${MODULE:?}" "${TOOLS:?}" "${BIN:?}"
export PATH=$TOOLS:$BIN:$PATH

tap_n=0 tap_failed=0 port=7000
tmp=$(mktemp -d)

# t NAME CMD...: one case; what CMD prints is shown if it fails
t() {
	local name=$1 out
	shift
	tap_n=$((tap_n + 1))
	if out=$("$@" 2>&1); then
		echo "ok $tap_n $name"
	else
		tap_failed=1
		echo "not ok $tap_n $name"
		tail -n 30 <<<"$out" | sed 's/^/# /'
	fi
}

skip() {	# NAME REASON
	tap_n=$((tap_n + 1))
	echo "ok $tap_n $1 # SKIP $2"
}

finish() {
	echo "1..$tap_n"
	rm -rf "$tmp"
	exit $tap_failed
}

bail() {
	echo "Bail out! $*"
	exit 1
}

wait_for() {	# SECONDS CMD...
	local end=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		((SECONDS < end)) || { echo "not within the limit: $*"; return 1; }
		sleep 0.1
	done
}

each() {	# CMD...: in every VM
	local i
	for ((i = 0; i < VM_COUNT; i++)); do
		on "$i" "$@" || return
	done
}

# modprobe only knows installed modules: load what rdmastream needs first.
load() {	# [PARAMETER=VALUE...]
	each modprobe -a rdma_cm || return
	each insmod "$MODULE" "$@"
}

set_net() {	# NAME=VALUE...: settings, in every VM
	each sysctl -q -w "${@/#/net.rdmastream.}"
}

# The three ways in which bytes can travel.
use() {		# raw | tcp | ring
	case $1 in
	raw)	set_net negotiate=0 ;;
	tcp)	set_net negotiate=1 upgrade=0 ;;
	ring)	set_net negotiate=1 upgrade=1 ;;
	esac
}

counters() {	# VM: name=value lines
	on "$1" rsctl -j stats |
		jq -r '.. | objects | to_entries[] | select(.value | type == "number") | "\(.key)=\(.value)"' |
		tr _ -
}

counter() {	# VM NAME
	counters "$1" | sed -n "s/^$2=//p" | head -n 1
}

# By how much a counter has grown since the file of "counters" was written.
grown() {	# VM NAME FILE
	local before
	before=$(sed -n "s/^$2=//p" "$3" | head -n 1)
	echo $(($(counter "$1" "$2") - ${before:-0}))
}

addr() {	# KIND VM
	local name=ADDR4_$2
	[[ $1 != *6 ]] || name=ADDR6_$2
	echo "${!name}"
}

# rs_stream from VM 0 to VM 1 and back; both must be content.
stream() {	# SERVER_KIND CLIENT_KIND [OPTION...]
	local server=$1 client=$2 pid status=0 port=$((7000 + RANDOM % 20000))
	shift 2
	timeout 110 on 1 rs_stream -s -k "$server" -p $port "$@" &
	pid=$!
	timeout 110 rs_stream -c "$(addr "$server" 1)" -k "$client" -p $port --wait "$@" || status=1
	wait $pid || status=1
	return $status
}

# What VM N's counters must say about $SENT and $RCVD bytes since $tmp/N.
assert_carrier() {	# raw|tcp|ring VM SENT RCVD
	local tx rx ring_tx ring_rx
	tx=$(grown "$2" tcp-tx-bytes "$tmp/$2") rx=$(grown "$2" tcp-rx-bytes "$tmp/$2")
	ring_tx=$(grown "$2" ring-tx-bytes "$tmp/$2") ring_rx=$(grown "$2" ring-rx-bytes "$tmp/$2")
	echo "VM $2: tcp $tx/$rx, ring $ring_tx/$ring_rx, wanted $1 $3/$4"
	case $1 in
	raw)	((tx + rx + ring_tx + ring_rx == 0)) ;;
	tcp)	((tx == $3 && rx == $4 && ring_tx + ring_rx == 0)) ;;
	# None lost, none twice, and more than half by RDMA.
	ring)	((tx + ring_tx == $3 && rx + ring_rx == $4 &&
		2 * ring_tx >= $3 && 2 * ring_rx >= $4)) ;;
	esac
}

# A stream of $BYTES each way that must travel as told.
carried() {	# raw|tcp|ring BYTES SERVER_KIND CLIENT_KIND [OPTION...]
	local how=$1 bytes=$2
	shift 2
	counters 0 >"$tmp/0"
	counters 1 >"$tmp/1"
	stream "$@" -n "$bytes" -t 100 || return
	assert_carrier "$how" 0 "$bytes" "$bytes" && assert_carrier "$how" 1 "$bytes" "$bytes"
}

link_up() {	# VM
	on "$1" rsctl -j links | jq -e 'any(.. | objects; .state? == "up")'
}

# A link between the two, so that a short stream need not wait for one.
want_link() {
	use ring
	wait_for 30 eval 'stream inet inet -n 64K -t 20 && link_up 0 && link_up 1'
}

dump() {
	each rsctl -p -j sockets
	each rsctl -p -j links
	each rsctl -j stats
}
