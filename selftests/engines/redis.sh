# shellcheck shell=bash disable=SC2034,SC2154	# shared with scenarios/engines.sh
# SPDX-License-Identifier: GPL-2.0-only
# Redis Cluster: six nodes; slots move to another node while RDMA is cut.
needs="redis-server redis-tools"
limit=900
least=1000000

nodes() {	# all nodes, as ADDRESS:PORT
	local vm
	for ((vm = 0; vm < VM_COUNT; vm++)); do
		printf '%s:%d %s:%d ' "$(addr inet $vm)" "$port" "$(addr inet $vm)" $((port + 1))
	done
}

cli() { timeout 60 "${by[@]}" redis-cli -h "$ADDR4_0" -p "$port" "$@"; }
# what all nodes agree on
settled() {
	local vm
	for ((vm = 0; vm < VM_COUNT; vm++)); do
		redis-cli -h "$(addr inet $vm)" -p "$port" cluster info | tr -d '\r' >"$tmp/info"
		grep -qx cluster_state:ok "$tmp/info" && grep -qx cluster_known_nodes:6 "$tmp/info" || return
		redis-cli -h "$(addr inet $vm)" -p "$port" info replication | tr -d '\r' >"$tmp/info"
		! grep -q master_link_status:down "$tmp/info" || return
	done
	[ "$(redis-cli -h "$ADDR4_0" -p "$port" cluster nodes | grep -c slave)" = 3 ]
}

engine_start() {
	local vm n
	for ((vm = 0; vm < VM_COUNT; vm++)); do
		for n in 0 1; do
			on $vm mkdir -p "$home/$n"
			start_in $vm redis$n "redis-server --port $((port + n)) --bind 0.0.0.0 --protected-mode no \
				--dir $home/$n --cluster-enabled yes --cluster-node-timeout 5000 \
				--save \"''\" --appendonly no"
		done
	done
	for ((vm = 0; vm < VM_COUNT; vm++)); do
		wait_for 40 listens $vm "$port" && wait_for 20 listens $vm $((port + 1)) || return
	done
	# shellcheck disable=SC2046
	timeout 120 "${by[@]}" redis-cli --cluster create $(nodes) --cluster-replicas 1 --cluster-yes &&
		wait_for 60 settled
}

engine_load() {
	local size
	for size in 64 4096; do
		timeout 60 "${by[@]}" redis-benchmark --cluster -h "$ADDR4_0" -p "$port" -c 30 \
			-n $((size > 64 ? 3000 : 6000)) -d $size -r 10000 -t set,get --csv 2>"$log/$way.benchmark" |
			awk -F'"' -v size=$size '$2 == "SET" || $2 == "GET" { print tolower($2) "-" size, $4 }' || return
	done
}

ids() { redis-cli -h "$ADDR4_0" -p "$port" cluster nodes | awk '/master/ { print $1 }' | sort; }
slots() {	# of the node with this id
	redis-cli -h "$ADDR4_0" -p "$port" cluster nodes | awk -v id="$1" '$1 == id {
		for (i = 9; i <= NF; i++) { split($i, r, "-"); n += (r[2] == "" ? r[1] : r[2]) - r[1] + 1 } print n }'
}

# The checked load, and meanwhile a resharding.
engine_work() {	# GO PROGRESS
	local from to status=0 client
	timeout 600 "${by[@]}" "$engines/redis.py" "$1" "$2" $(nodes) &
	client=$!
	read -r -d '' from to _ <<<"$(ids | tr '\n' ' ')"
	wait_for 30 more_than 1000
	timeout 150 "${by[@]}" redis-cli --cluster reshard "$ADDR4_0:$port" --cluster-from "$from" --cluster-to "$to" \
		--cluster-slots 300 --cluster-yes >"$log/reshard" 2>&1 || { tail -n 3 "$log/reshard"; status=1; }
	grep -c '^Moving slot' "$log/reshard" | sed 's/^/slots moved: /'
	wait $client && return $status
}

engine_verify() {
	wait_for 30 settled
	timeout 60 redis-cli --cluster check "$ADDR4_0:$port" && ! grep -rhiE 'failover|election|marking node|FAIL message' "$log"/ring.redis*
}

engine_state() {
	redis-cli -h "$ADDR4_0" -p "$port" cluster nodes | awk '{ sub("myself,", "", $3); print $1, $2, $3, $8 }' | sort
}
