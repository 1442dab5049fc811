# shellcheck shell=bash disable=SC2034,SC2154	# shared with scenarios/engines.sh
# SPDX-License-Identifier: GPL-2.0-only
# PyTorch distributed with gloo: all-reduce of 1 KiB to 16 MiB, compared bit by bit with TCP's.
needs="python3-torch"
limit=900
memory=1536
least=10000000

# A rank in each guest; the first one, in guest 0, speaks.
ranks() {	# ARGUMENT of gloo.py...
	local vm pids=() status=0
	export GLOO_SOCKET_IFNAME=eth0 MASTER_ADDR=$ADDR4_0 MASTER_PORT=$port WORLD_SIZE=$VM_COUNT OMP_NUM_THREADS=1
	for ((vm = 1; vm < VM_COUNT; vm++)); do
		RANK=$vm on_bg $vm "exec timeout 600 ${by[*]} python3 $engines/gloo.py $* >$log/$way.gloo.$vm 2>&1"
		pids+=($!)
	done
	RANK=0 timeout 600 "${by[@]}" python3 "$engines/gloo.py" "$@" 2>"$log/$way.gloo.0" || status=1
	for vm in "${pids[@]}"; do
		wait "$vm" || status=1
	done
	return $status
}

engine_start() { ranks load 1 "$log/$way.sums" >/dev/null; }
engine_load() { ranks load "${seconds:-3}" "$log/$way.sums"; }
# The sums must be those that TCP has brought.
engine_work() { ranks work "$1" "$2" "$log/tcp.sums"; }
engine_verify() { cmp "$log/tcp.sums" "$log/ring.sums"; }
