#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# What scripts/demo shows; runs in VM 0.  usage: demo.sh MODULE TOOLS
#
# Each "vmN# COMMAND" is what runs, in VM N.  The counters are checked as well: if
# the bytes did not go by RDMA this fails.
set -u
# shellcheck source=/dev/null
. "$LAB"
MODULE=$1 PATH=$2:$PATH
export PATH COLUMNS=100		# rsctl's tables
server=$ADDR4_1
tmp=$(mktemp -d)

title() { printf '\n\n=== %s\n' "$*"; }
say() {
	echo
	printf '# %s\n' "$@"
}
fail() {
	printf '\nFAILED: %s\n' "$*"
	in_all rsctl sockets
	in_all rsctl links
	in_all rsctl stats
	exit 1
}

prompt() { printf '\nvm%d# %s\n' "$1" "$2"; }
show() {	# VM COMMAND-LINE
	prompt "$@"
	on "$@" 2>&1 || fail "exit status $? of: $2"
}
# Meanwhile; what it says goes to a file.  Its job is $!.
show_bg() {	# FILE VM COMMAND-LINE
	prompt "$2" "$3 &"
	on_bg "$2" "exec $3" >"$tmp/$1" 2>&1
}

# All counters of both VMs as "VM NAME VALUE".
snapshot() {	# FILE
	local n
	for n in 0 1; do
		on $n rsctl -s -o stats | awk -v n=$n '{ print n, $1, $2 }'
		echo "$n packets $(on $n cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts)"
	done >"$tmp/$1"
}
counter() {	# FILE VM NAME
	awk -v n="$2" -v name="$3" '$1 == n && $2 == name { v = $3 } END { print v + 0 }' "$tmp/$1"
}
grown() {	# FROM TO VM NAME
	echo $(($(counter "$2" "$3" "$4") - $(counter "$1" "$3" "$4")))
}
# Bytes that both VMs sent on a carrier.
sent() {	# FROM TO tcp|ring
	echo $(($(grown "$1" "$2" 0 "$3-tx-bytes") + $(grown "$1" "$2" 1 "$3-tx-bytes")))
}
size() {
	if (($1 < 10000)); then
		echo "$1 bytes"
	else
		numfmt --to=iec-i --suffix=B --format=%.1f "$1"
	fi
}
# At least so many bytes, nearly all by RDMA, and the device has seen them too.
must_be_rdma() {	# FROM TO BYTES
	local ring tcp packets
	ring=$(sent "$1" "$2" ring) tcp=$(sent "$1" "$2" tcp)
	packets=$(($(grown "$1" "$2" 0 packets) + $(grown "$1" "$2" 1 packets)))
	say "$(size "$ring") went over RDMA, in $packets packets of the RDMA devices;" \
		"$(size "$tcp") went over TCP, before RDMA took over."
	((ring >= $3 && ring > 9 * tcp)) || fail "these bytes did not go over RDMA"
	((packets > ring / 4096)) || fail "the RDMA devices have not seen these bytes"
}
# Whatever one VM sent, over RDMA or TCP, the other one received.
none_lost() {	# FROM TO
	local a b
	for a in 0 1; do
		b=$((1 - a))
		(($(grown "$1" "$2" $a tcp-tx-bytes) + $(grown "$1" "$2" $a ring-tx-bytes) ==
			$(grown "$1" "$2" $b tcp-rx-bytes) + $(grown "$1" "$2" $b ring-rx-bytes))) ||
			fail "bytes from vm$a to vm$b were lost"
	done
}
on_ring() { rsctl sockets | grep -q ' ring  *ring '; }

title "Two machines"
say "vm0 ($ADDR4_0) and vm1 ($ADDR4_1) run Debian's Linux $(uname -r)." \
	"Between them is Ethernet, and on it a soft-RoCE device: RDMA in software." \
	"They may be emulated, so the speed means nothing; look at which way the bytes go."
show 0 "rdma link"
in_all modprobe rdma_cm || fail "no rdma_cm"
for n in 0 1; do
	show $n "insmod ${MODULE#"$VM_TOP"/}"
done

title "Redis over RDMA"
say "Debian's Redis, unmodified.  \"rsctl run\" gives it rdmastream sockets."
show_bg redis 1 "rsctl run redis-server --protected-mode no --save '' --bind 0.0.0.0"
wait_for 30 listens 1 6379 || { cat "$tmp/redis"; fail "no Redis"; }
redis=$!
say "Before: nothing has been counted yet."
show 0 "rsctl stats"
snapshot start

benchmark="rsctl run redis-benchmark -h $server -t set,get -n 2000 -c 4 -q"
for bytes in 64 4096; do
	show_bg bench 0 "$benchmark -d $bytes"
	bench=$!
	if [ $bytes = 4096 ]; then
		wait_for 20 on_ring || fail "no connection got a ring"
		say "While it runs: TX and RX show what carries each direction; \"ring\" is RDMA." \
			"If a connection is not on a ring, REASON says why."
		show 0 "rsctl sockets"
		show 1 "rsctl sockets"
		say "All connections between two hosts share one link:"
		show 0 "rsctl links"
		say "The result:"
	fi
	wait $bench || { cat "$tmp/bench"; fail "redis-benchmark"; }
	tr '\r' '\n' <"$tmp/bench" | grep 'per second'
done
say "After:"
show 0 "rsctl stats"
snapshot redis
# what comes before the link is up depends on the machine
must_be_rdma start redis $((2000 * 4096))
none_lost start redis

title "A plain client of the same server"
say "A client stores a value over RDMA.  Another one reads it over plain TCP: the same" \
	"redis-cli without rsctl, as on a machine without this module."
show 0 "rsctl run redis-cli -h $server set greeting 'hello from RDMA'"
snapshot plain0
show 0 "redis-cli -h $server get greeting" | tee "$tmp/get"
grep -q 'hello from RDMA' "$tmp/get" || fail "the plain client was not served"
snapshot plain1
show 1 "rsctl stats | grep plain"
plain=$(grown plain0 plain1 1 plain-accepts)
moved=$(($(sent plain0 plain1 ring) + $(sent plain0 plain1 tcp)))
say "Connections that the server accepted as plain TCP: $plain.  Bytes that the module" \
	"carried for them, over RDMA or TCP: $moved."
((plain == 1 && moved == 0)) || fail "that was no plain TCP"

title "iperf3 over RDMA"
show_bg iperf 1 "rsctl run iperf3 --server --one-off"
iperf=$!
wait_for 30 listens 1 5201 || { cat "$tmp/iperf"; fail "no iperf3"; }
snapshot iperf0
show 0 "rsctl run iperf3 --client $server --time 5"
wait $iperf || { cat "$tmp/iperf"; fail "iperf3 server"; }
snapshot iperf1
must_be_rdma iperf0 iperf1 1000000

title "The end"
redis-cli -h "$server" shutdown nosave || fail "Redis did not end"
wait $redis || { cat "$tmp/redis"; fail "redis-server"; }
snapshot end
for n in 0 1; do
	show $n "rmmod rdmastream"
done
ring=$(sent start end ring) tcp=$(sent start end tcp)
cat <<END

  sent over RDMA         $(size "$ring")	($ring bytes)
  sent over TCP          $(size "$tcp")	(the start of each connection)
  plain TCP client       served by the same listener
  programs modified      none
END
((ring > 0)) || exit 1
