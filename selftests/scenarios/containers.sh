#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=2 asked=6.12 timeout=500
# Containers of systemd-nspawn, set up as Documentation/using.rst says.  Their names end with the
# number of their VM.  With shared devices, on two hosts, over soft-RoCE, which serves network
# namespaces in 7.3; before that, containers are on TCP unless they use the host's network.  With
# exclusive devices, on one host, over rs_hca: soft-RoCE does not survive "rdma dev set".
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=selftests/scenarios/hca-lib.sh
. "$(dirname "$0")/hca-lib.sh"

if ! type -P systemd-nspawn >/dev/null; then
	skip "containers" "no systemd-nspawn: scripts/install-deps containers"
	done_testing
fi

size=1000000 bytes=$((2 * 1024 * 1024))

# NAME OPTION... CMD...: an image of the guest's programs without any configuration, in the group
# that systemd would make.  What belongs to the tests is where the host has it.
cat >"$tmp/spawn" <<END
image=$tmp/image.\$1 group=/sys/fs/cgroup/machine.slice/\$1.scope
shift
mkdir -p \$image/{usr,etc,proc,sys,dev,run,tmp,var,root} \$group
for dir in bin sbin lib lib64; do ln -sfn usr/\$dir \$image/\$dir; done
echo ID=test >\$image/etc/os-release
echo root:x:0:0:root:/root:/bin/sh >\$image/etc/passwd
echo \$\$ >\$group/cgroup.procs
exec systemd-nspawn -q --register=no --keep-unit --as-pid2 --console=pipe -D \$image \\
	--bind-ro=/usr --bind-ro=$BIN --bind-ro=$TOOLS --bind=$tmp \\
	-E PATH=$TOOLS:$BIN:/usr/bin:/usr/sbin "\$@"
END

vm_of() { echo "${1: -1}"; }	# NAME
box() {		# NAME OPTION... CMD...
	on "$(vm_of "$1")" bash "$tmp/spawn" "$@"
}
# The network namespace NAME, set up before, or "host0", "host1": the host's.
within() {	# NAME OPTION... CMD...: a container in it
	case $1 in
	host?)	box "$@" ;;
	*)	box "$1" --network-namespace-path="/run/netns/$1" "${@:2}" ;;
	esac
}
stop() {	# NAME PID: the container, and the job that has started it
	on "$(vm_of "$1")" "echo 1 >/sys/fs/cgroup/machine.slice/$1.scope/cgroup.kill"
	wait "$2" 2>/dev/null
	true
}
inside() {	# NAME CMD...: the host's command in it
	case $1 in
	host?)	on "$(vm_of "$1")" "${@:2}" ;;
	*)	on "$(vm_of "$1")" ip netns exec "$@" ;;
	esac
}
counters() { inside "$1" rsctl -s -o stats; }	# NAME; so mark and grown know it, too
listening() { inside "$1" ss -Hltn "sport = :$2" | grep -q .; }	# NAME PORT
setting() { inside "$1" sysctl -n "net.rdmastream.$2"; }	# NAME SETTING

# ---- set up ----

# Interfaces of kind veth reach the other VM by a bridge, beside eth0, above which some guests can
# have only VLANs.  Those of kind macvlan reach each other only: above a VLAN, links failed.
wires() {
	in_all "ip link add br0 type bridge; ip link set br0 up
		ip link add link eth0 name wire type vlan id 7
		ip link set wire mtu 1400 master br0 up
		ip link add parent type dummy; ip link set parent up"
}
plug() {	# NAME macvlan|veth NUMBER: with address 10.99.0.NUMBER
	local make="link parent name $1 type macvlan mode bridge"
	[ "$2" = macvlan ] || make="$1-up mtu 1400 master br0 up type veth peer name $1"
	on "$(vm_of "$1")" "ip link add $make && ip link set $1 mtu 1400 netns $1 &&
		ip -n $1 link set lo up && ip -n $1 addr add 10.99.0.$3/24 dev $1 &&
		ip -n $1 link set $1 up"
}
add() {		# NAME macvlan|veth NUMBER
	on "$(vm_of "$1")" ip netns add "$1" && plug "$@"
}
add_rdma() {	# NAME [KIND]
	inside "$1" rdma link add "rdma-$1" type "${2-rxe}" netdev "$1"
}
del() {		# NAME...
	local name
	for name; do on "$(vm_of "$name")" ip netns del "$name" || return; done
}
only_hosts() {
	! in_all "ls /sys/class/net; rdma dev" | grep -E '^c[0-9]|-[cu][0-9]'
}
cleared() {
	wait_for 40 only_hosts && return
	only_hosts
	in_all "ip -a netns pids; rsctl links; rsctl peers; lsns -t net"
	return 1
}
devices() { in_all rdma system set netns "$1"; }	# shared|exclusive

# Soft-RoCE has a socket in each network namespace that it serves.
served() { inside "$1" ss -Hlun "sport = :4791" | grep -q .; }	# NAME

# ---- streams ----

carriers() {	# NAME: of connections
	inside "$1" rsctl -j sockets | jq -r '.[] | select(.tx.carrier) | .tx.carrier + " " + .rx.carrier'
}
ringed() { carriers "$1" | grep -qx "ring ring"; }	# NAME
held() { inside "$1" test -e "$2"; }	# NAME FILE

# A stream each way, some of which must go by rings.  They come before there is much data, and are
# still there when a slow machine looks.
by_rings() {	# SERVER CLIENT ADDRESS
	local server=$1 client=$2 port=$((7000 + RANDOM % 20000)) hold end pids=() status=0
	hold=$(fresh hold)
	local options=(-k inet -p "$port" -t 100 -n "$size" --hold-at 4K --hold "$hold")
	for end in "$server" "$client"; do
		inside "$end" sysctl -q -w net.rdmastream.ring_mode=1 net.rdmastream.ring_idle_ms=60000
	done
	mark "$server"
	mark "$client"
	within "$server" rs_stream -s "${options[@]}" &
	pids+=($!)
	wait_for 30 listening "$server" $port || status=1
	within "$client" rs_stream -c "$3" "${options[@]}" &
	pids+=($!)
	wait_for 40 held "$client" "$hold.held"
	wait_for 40 ringed "$server" && wait_for 40 ringed "$client" || status=1
	for end in "$server" "$client"; do
		inside "$end" rsctl -o sockets
		inside "$end" rsctl -d peers
		inside "$end" sysctl -q -w net.rdmastream.ring_mode=2
		inside "$end" touch "$hold"
	done
	wait "${pids[0]}" || status=1
	wait "${pids[1]}" || status=1
	for end in "$server" "$client"; do assert_carrier ring "$end" $size $size || status=1; done
	return $status
}

# One that stays on TCP.  One end at least counts this reason; the other waits for it to set up the
# link.
by_tcp() {	# REASON SERVER CLIENT ADDRESS
	local reason=reason:$1 server=$2 client=$3 hold end pids=() status=0
	local port=$((7000 + RANDOM % 20000))
	hold=$(fresh hold)
	local options=(-k inet -p "$port" -t 100 -n "$size" --hold-at 128K --hold "$hold")
	mark "$server"
	mark "$client"
	within "$server" rs_stream -s "${options[@]}" &
	pids+=($!)
	wait_for 30 listening "$server" $port || status=1
	within "$client" rs_stream -c "$4" "${options[@]}" &
	pids+=($!)
	wait_for 60 counted "$reason" "$server" "$client" || status=1
	for end in "$server" "$client"; do inside "$end" touch "$hold"; done
	wait "${pids[0]}" || status=1
	wait "${pids[1]}" || status=1
	for end in "$server" "$client"; do
		growth "$end" | grep ' [1-9]'
		[ "$(grown "$end" ring-tx-bytes ring-rx-bytes)" = "0 0" ] || status=1
	done
	return $status
}
counted() {	# NAME END END
	[ "$(grown "$2" "$1")" != 0 ] || [ "$(grown "$3" "$1")" != 0 ]
}

# A program that knows only TCP: most of its data goes by rings.
moved() {	# NAME CMD...
	mark "$1"
	"${@:2}" || return
	growth "$1" | grep -E '(active-opens|x-bytes) [1-9]'
	(($(grown "$1" ring-tx-bytes) > bytes / 2 && $(grown "$1" ring-rx-bytes) > bytes / 2))
}

refuses() {	# WORDS CMD...: fails, and says so
	local status=0 output
	output=$("${@:2}" 2>&1) || status=$?
	echo "$output"
	[ $status != 0 ] && grep -q -- "$1" <<<"$output"
}

# ---- rights ----

# A line for each.
cat >"$tmp/try" <<'END'
try() { "$@" >/dev/null 2>&1 && echo "may $*" || echo "may not $*"; }
try rsctl stats
try rsctl set ring_mode 1
try sh -c "echo 1 >/proc/sys/net/rdmastream/ring_mode"
try rsctl drain on
try rsctl set rmb_max 300000000
try rsctl set link_stall_ms 0
try sh -c "echo 300000000 >/proc/sys/net/rdmastream/rmb_max"
try rdma link delete rxe0
try rsctl cgroup on /sys/fs/cgroup
try rmmod rdmastream
END
tried() {	# NAME OPTION...
	"$@" sh "$tmp/try" >"$tmp/tried"
	cat "$tmp/tried"
	[ "$(grep -c . "$tmp/tried")" = 10 ]
}
expect() {	# WHO: lines on standard input
	local line
	while read -r line; do ok "$1 $line" grep -qxF "$line" "$tmp/tried"; done
}
others_are_as_before() {	# RMB_MAX
	[ "$(setting host0 ring_mode),$(setting host0 rmb_max)" = "2,$1" ] &&
		inside host0 rsctl version | grep '^drained *no'
}

# ---- the tests ----

on 1 "base64 -d <<<$(base64 -w 0 "$tmp/spawn") >$tmp/spawn"
in_all chmod 755 "$tmp"
wires
load || bail "cannot load the module"

# Two containers that can use rings.
far=host1 near=host0 to=$ADDR4_1

ok "a container on the host's network" by_rings host1 host0 "$ADDR4_1"

if [[ $KERNEL != 6.* ]]; then
	add c0 macvlan 1
	add c10 macvlan 3
	add_rdma c0
	add_rdma c10
	ok "soft-RoCE serves a container" served c0
	ok "soft-RoCE, macvlan: on one host" by_rings c10 c0 10.99.0.3
	del c0 c10
	ok "soft-RoCE, macvlan: nothing remains" cleared
fi

add c0 veth 1
add c1 veth 2
ok "no RDMA device: on TCP" by_tcp link-failed c1 c0 10.99.0.2
add_rdma c0
add_rdma c1
if [[ $KERNEL != 6.* ]]; then
	ok "soft-RoCE, veth: between two hosts" by_rings c1 c0 10.99.0.2
	far=c1 near=c0 to=10.99.0.2
else
	ok "soft-RoCE does not serve a container" eval '! served c0'
	ok "soft-RoCE: on TCP" by_tcp link-failed c1 c0 10.99.0.2
fi

# ---- programs that know only TCP ----

within $far rsctl run rs_echo serve 7001 >/dev/null &
server=$!
ok "a server listens" wait_for 30 listening $far 7001
ok "rsctl run: Python" moved $near within $near rsctl run rs_echo_py "$to" 7001 $bytes
ok "rsctl run: static C" moved $near within $near rsctl run rs_echo talk "$to" 7001 $bytes
stop $far $server

in_all "mountpoint -q /sys/fs/bpf || mount -t bpf bpf /sys/fs/bpf"
if in_all rsctl cgroup on machine.slice 2>"$tmp/err"; then
	within $far redis-server --port 6379 --bind 0.0.0.0 --protected-mode no --save '' \
		--appendonly no >/dev/null &
	server=$!
	ok "a cgroup: redis-server listens" wait_for 60 listening $far 6379
	ok "a cgroup: redis-benchmark" moved $near within $near timeout 100 redis-benchmark -h "$to" \
		-t set,get -n 2000 -c 4 -d 4096 -q
	stop $far $server
	within $far rs_echo serve 7002 >/dev/null &
	server=$!
	ok "a cgroup: a server listens" wait_for 30 listening $far 7002
	ok "a cgroup: Python" moved $near within $near rs_echo_py "$to" 7002 $bytes
	in_all rsctl cgroup off machine.slice
	mark $near
	ok "a cgroup that is switched off: Python" within $near rs_echo_py "$to" 7002 $bytes
	ok "a cgroup that is switched off: TCP" test "$(grown $near active-opens)" = 0
	stop $far $server
else
	diag <"$tmp/err"
	skip "a cgroup" "needs a stock kernel of 6.6 or later"
fi

# ---- rights, from within ----

rmb_max=$(setting host0 rmb_max)
ok "a container without CAP_NET_ADMIN" tried within c0
expect "it" <<-END
	may rsctl stats
	may not rsctl set ring_mode 1
	may not sh -c echo 1 >/proc/sys/net/rdmastream/ring_mode
	may not rsctl drain on
	may not rsctl set rmb_max 300000000
	may not rsctl set link_stall_ms 0
	may not sh -c echo 300000000 >/proc/sys/net/rdmastream/rmb_max
	may not rdma link delete rxe0
	may not rsctl cgroup on /sys/fs/cgroup
	may not rmmod rdmastream
END
ok "the root of a user namespace, and of its network namespace" tried box u0 \
	--private-users=65536 --private-users-ownership=off --private-network
expect "it" <<-END
	may rsctl stats
	may rsctl set ring_mode 1
	may sh -c echo 1 >/proc/sys/net/rdmastream/ring_mode
	may rsctl drain on
	may not rsctl set rmb_max 300000000
	may not rsctl set link_stall_ms 0
	may not sh -c echo 300000000 >/proc/sys/net/rdmastream/rmb_max
	may not rdma link delete rxe0
	may not rsctl cgroup on /sys/fs/cgroup
	may not rmmod rdmastream
END
ok "a container with CAP_NET_ADMIN in the host's user namespace" tried within c0 \
	--capability=CAP_NET_ADMIN
expect "it" <<-END
	may rsctl stats
	may rsctl set ring_mode 1
	may not sh -c echo 1 >/proc/sys/net/rdmastream/ring_mode
	may rsctl drain on
	may rsctl set rmb_max 300000000
	may rsctl set link_stall_ms 0
	may not sh -c echo 300000000 >/proc/sys/net/rdmastream/rmb_max
	may rdma link delete rxe0
	may not rsctl cgroup on /sys/fs/cgroup
	may not rmmod rdmastream
END
ok "the host's settings are as before" others_are_as_before "$rmb_max"
del c0 c1
ok "nothing remains of containers" cleared

# ---- exclusive devices ----

if [ -e "$HCA/rs_hca.ko" ]; then
	load_hca
	ok "devices are exclusive" wait_for 20 devices exclusive
	add c0 veth 1
	add c10 veth 3
	ok "exclusive, no device: plain TCP" by_tcp no-device c10 c0 10.99.0.3
	add_rdma c0 rs_hca
	add_rdma c10 rs_hca
	ok "exclusive: a container has its own device" \
		test "$(inside c0 ls /sys/class/infiniband)" = rdma-c0
	ok "exclusive: on one host" by_rings c10 c0 10.99.0.3
	# the stream does not end: it waits for a file that never comes
	options=(-k inet -p 6999 -t 200 -n 1000000 --hold-at 128K --hold "$tmp/never")
	within c10 rs_stream -s "${options[@]}" >/dev/null &
	server=$!
	wait_for 30 listening c10 6999
	within c0 rs_stream -c 10.99.0.3 "${options[@]}" >/dev/null &
	client=$!
	ok "exclusive: a stream has rings" wait_for 40 ringed c0
	stop c10 $server
	del c10
	ok "exclusive: when one container is killed, the other leaves RDMA" wait_for 40 eval '! ringed c0'
	stop c0 $client
	del c0
	ok "exclusive: nothing remains" cleared
	ok "devices are shared again" wait_for 20 devices shared
else
	skip "exclusive devices" "no rs_hca"
fi
ok "the module can be unloaded" wait_for 20 unload_module
done_testing
