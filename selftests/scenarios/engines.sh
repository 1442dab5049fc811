#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=3 kernels=6.12 timeout=900
# An unmodified engine with a member in each of three guests: on TCP, and under "rsctl run", where
# RDMA is cut in the middle of a load and comes back.  The connections of the members must be on
# rings, no request may fail, and no member may notice.  ENGINE selects from selftests/engines/,
# WAYS what it is measured on, ROUNDS how often.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"
engines=$(cd "$(dirname "$0")/../engines" && pwd)
# shellcheck source=selftests/engines/lib.sh
. "$engines/lib.sh"

engine=${ENGINE:-redis} rounds=${ROUNDS:-2} ways=${WAYS:-tcp ring}
log=$RESULTS/engine
rm -rf "$log"
mkdir -p "$log"
needs=''
# shellcheck source=/dev/null
. "$engines/$engine.sh"

lacking() {	# packages that are not there
	local package
	for package in $needs; do
		dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null | grep -q '^[ih]i' ||
			echo "no package $package"
	done
	engine_unfit
}

why=$(lacking)
if [ -n "$why" ]; then
	skip "$engine" "${why//$'\n'/, }"
	done_testing
fi

# Programs of any user must be able to read what is preloaded into them.
in_all cp "$TOOLS/rsctl" "$TOOLS/librdmastream-preload.so" "$tmp"
in_all chmod -R a+rX "$tmp"
export PATH=$tmp:$PATH
: >"$log/measured"

# Settings are those of a new installation, but for what the engine's page recommends.
load_module || bail "cannot load the module"
[ -z "${settings-}" ] || in_all sysctl -q -w "${settings[@]/#/net.rdmastream.}"
if [[ " $ways " == *" smc "* ]] && ! why=$(smc_up 2>&1); then
	diag "SMC-R cannot be set up: $why"
	ways=${ways/smc/}
fi

# Members on each way run beside each other, so that the loads can take turns, unless they cannot.
turns() {	# WAY...
	local round
	up=''
	for way; do
		use_way "$way"
		if ok_here "$engine starts, $way" engine_start; then
			up+=" $way"
		elif [ "$way" != smc ]; then
			tell_logs
			bail "$engine cannot be started"
		fi
	done
	note_counters
	for ((round = 1; round <= rounds; round++)); do
		for way in $up; do
			use_way "$way"
			measured=$(mktemp "$tmp/measured.XXXX")
			ok_here "load, $way, round $round" measure "$measured" || tell_logs
			sed "s/^/$way /" "$measured" >>"$log/measured"
		done
	done
}
ends() {	# WAY...
	for way; do
		use_way "$way"
		ok_here "$engine ends, $way" engine_stop
	done
}

others=${ways/ring/}
if [ "${alone-}" = yes ]; then
	for one in $others; do
		turns "$one"
		# shellcheck disable=SC2086
		ends $up
	done
	turns ring
else
	# shellcheck disable=SC2086
	turns $others ring
fi
if [[ " $ways " == *" smc "* ]]; then
	diag "SMC-R has carried $(smc_bytes) bytes"
fi
for ((vm = 0; vm < VM_COUNT; vm++)); do
	bytes=$(($(grown $vm ring-tx-bytes) + $(grown $vm ring-rx-bytes)))
	ok "the load went by RDMA in guest $vm: $bytes bytes, $(share $vm)% of all" \
		test "$bytes" -gt "${least:-1000000}"
done

# What is measured is over; only the members on rings remain.
# shellcheck disable=SC2086
[ "${alone-}" = yes ] || ends ${up/ring/}
use_way ring
go=$log/go progress=$log/progress
rm -f "$go"
: >"$progress"
engine_work "$go" "$progress" >"$log/work" 2>&1 &
work=$!
ok "members are connected by rings" wait_for 120 members_on_rings
list_members | diag
if declare -F engine_change >/dev/null; then
	ok "members change their roles under load" engine_change
fi
before=$(engine_state)
cut_and_back
after=$(engine_state)
printf 'state: %s\n' "$before" | diag
ok "no member has noticed" test -n "$before" -a "$before" = "$after" || printf 'now: %s\n' "$after" | diag
touch "$go"
wait_for 120 gone $work
wait $work
status=$?
tail -n 12 "$log/work" | diag
ok "no request failed, all results are right" test $status = 0
ok "$engine has kept its data" engine_verify
ok_here "$engine ends" engine_stop
# shellcheck disable=SC2154	# of tap.sh
[ "$tap_failed" = 0 ] || tell_logs

ratios | tee "$log/table" | diag
ok "no socket remains" wait_for 100 no_sockets || rsctl -d sockets | diag
ok "the module can be unloaded" wait_for 20 unload_module
done_testing
