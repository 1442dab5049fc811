# shellcheck shell=bash disable=SC2034,SC2154	# shared with scenarios/engines.sh
# SPDX-License-Identifier: GPL-2.0-only
# etcd: three members, which are Go programs; the leader moves under load.
needs="etcd-server etcd-client"
limit=1500
least=5000

endpoints() {
	local vm
	for ((vm = 0; vm < VM_COUNT; vm++)); do printf 'http://%s:%s,' "$(addr inet $vm)" "$port"; done | sed 's/,$//'
}
ctl() { ETCDCTL_API=3 timeout 60 "${by[@]}" etcdctl --endpoints "$(endpoints)" "$@"; }
# of each member: "ENDPOINT ID LEADER? TERM"
status() { ctl endpoint status -w simple | awk -F', ' '{ print $1, $2, $5, $7 }'; }
healthy() { ctl endpoint health; }

engine_unfit() {
	[ -e /proc/sys/kernel/seccomp ] || echo "no seccomp, which rsctl run needs for Go programs"
}

engine_start() {
	local vm cluster=''
	for ((vm = 0; vm < VM_COUNT; vm++)); do
		cluster+=,m$vm=http://$(addr inet $vm):$((port + 1))
	done
	for ((vm = 0; vm < VM_COUNT; vm++)); do
		start_in $vm etcd "etcd --name m$vm --data-dir $home/etcd --initial-cluster ${cluster#,} \
			--listen-peer-urls http://0.0.0.0:$((port + 1)) --initial-advertise-peer-urls http://$(addr inet $vm):$((port + 1)) \
			--listen-client-urls http://0.0.0.0:$port --advertise-client-urls http://$(addr inet $vm):$port \
			--unsafe-no-fsync --heartbeat-interval 500 --election-timeout 5000"
	done
	wait_for 90 healthy
}

# puts and reads of the whole cluster's mind, by clients of all members
engine_load() {
	timeout 60 "${by[@]}" python3 "$engines/etcd.py" load "${seconds:-4}" "$(endpoints)"
}
engine_work() { timeout 600 "${by[@]}" python3 "$engines/etcd.py" work "$1" "$2" "$(endpoints)"; }

# Clients are in guest 0, and so is the leader in the end; followers do not talk to each other.
wanted_pair() { [ "$1" = 0 ] || [ "$2" = 0 ]; }
is_leader() { status | grep -q "^$1 .* true "; }	# ENDPOINT
hand_over() {	# ENDPOINT: this member becomes the leader
	local was id
	was=$(status | awk '$3 == "true" { print $1 }')
	id=$(status | awk -v to="$1" '$1 == to { print $2 }')
	ETCDCTL_API=3 timeout 60 "${by[@]}" etcdctl --endpoints "$was" move-leader "$id" &&
		wait_for 20 healthy && is_leader "$1"
}
# The leader hands over to another member.  Until that is over, etcd itself refuses requests.
engine_change() {
	local first=http://$ADDR4_0:$port moved=0
	touch "$go.changing"
	! is_leader "$first" || hand_over "http://$ADDR4_1:$port" || moved=1
	hand_over "$first" || moved=1
	date +%s.%N >"$go.new" && mv "$go.new" "$go.changed"
	rm "$go.changing"
	return $moved
}

engine_state() { status; }
engine_verify() {
	local hashes
	hashes=$(ctl endpoint hashkv -w json | jq -r '.[].HashKV.hash' | sort -u)
	[ "$(wc -l <<<"$hashes")" = 1 ] && [ -n "$hashes" ]
}
