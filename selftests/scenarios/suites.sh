#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=1 kernels=6.12,6.1,debug timeout=1500
# Unmodified test suites of other projects: each on TCP, then on rdmastream as plain TCP and on
# rings.  Every case must have the same result as on TCP.  SUITES selects from
# selftests/suites/; by default, the quick ones run.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"

suites=$(cd "$(dirname "$0")/../suites" && pwd)
log=$RESULTS/suites
group=/sys/fs/cgroup/suite
mkdir -p "$log" $group

property() {	# SUITE NAME
	sed -n "s/^$2=\"\{0,1\}\([^\"]*\)\"\{0,1\}$/\1/p" "$suites/$1.sh"
}

if [ -z "${SUITES-}" ]; then
	for file in "$suites"/*.sh; do
		name=$(basename "$file" .sh)
		[ "$(property "$name" quick)" != yes ] || SUITES+=" $name"
	done
fi

absent() {	# SUITE: why it cannot run
	local package
	"$suites/suite" "$1" unfit
	[ ! -s "$suites/../../build/suites/$1.skip" ] || cat "$suites/../../build/suites/$1.skip"
	for package in $(property "$1" needs); do
		dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null | grep -q '^[ih]i' ||
			echo "no package $package"
	done
}

sockets() { rsctl -j sockets | jq length; }
none_but_held() { [ "$(sockets)" -le "$sockets_held" ]; }

# A run must not affect the next one.
clear_up() {
	echo 1 >$group/cgroup.kill
	wait_for 20 grep -q 'populated 0' $group/cgroup.events
	wait_for 30 none_but_held
	ss -HK state time-wait >/dev/null
}

# One run, with its results in $log/SUITE.HOW
go() {		# tcp|raw|ring SUITE [CASE...]
	local how=$1 name=$2 base=$log/$2.$1 prefix=() status
	shift 2
	case $how in
	raw)	use raw; prefix=(rsctl run) ;;
	ring)	use ring; prefix=(rsctl run) ;;
	esac
	: >"$tmp/results"
	rm -rf "$tmp/work"
	mkdir "$tmp/work"
	mark 0
	(
		echo $BASHPID >$group/cgroup.procs
		cd "$tmp/work" || exit
		exec timeout -k 5 "$(property "$name" limit)" "${prefix[@]}" \
			"$suites/suite" "$name" "$tmp/results" "$@"
	) </dev/null >>"$base.log" 2>&1
	status=$?
	clear_up
	growth 0 | awk '$2' >"$tmp/growth"
	cp "$tmp/growth" "$base.counters"
	[ $# != 0 ] || echo "exit-status $status" >>"$tmp/results"
	sort -u "$tmp/results"
}

# Cases with another result than on TCP: "CASE RESULT-ON-TCP RESULT"
differing() {	# TCP-RESULTS RESULTS
	awk 'FILENAME == ARGV[1] { tcp[$1] = tcp[$1] $2; next } { ours[$1] = ours[$1] $2 }
		END {
			for (name in tcp)
				if (tcp[name] != ours[name])
					print name, tcp[name], name in ours ? ours[name] : "absent"
			for (name in ours)
				if (!(name in tcp))
					print name, "absent", ours[name]
		}' "$1" "$2" | sort
}

grew() {	# NAME
	value "$1" "$tmp/growth"
}

# Did the sockets of the run use the expected carrier?
proved() {	# raw|ring SUITE
	local least
	least=$(property "$2" least)
	if [ "$1" = raw ]; then
		[ "$(grew reason:off)" -gt 0 ] && [ "$(grew ring-tx-bytes)" = 0 ] && [ "$(grew tcp-tx-bytes)" = 0 ]
	else
		[ "$(grew ring-tx-bytes)" -ge "${least:-1}" ]
	fi
}

# Some cases depend on timing: those that differ are run once more, on both.
compare() {	# raw|ring SUITE
	local how=$1 name=$2 base=$log/$2.$1 again
	go "$how" "$name" >"$base"
	bytes=$(grew ring-tx-bytes)
	ok "$name, $how: used this carrier, $bytes bytes over RDMA" proved "$how" "$name"
	differing "$log/$name.tcp" "$base" >"$base.differs"
	cp "$base.differs" "$base.first"
	if [ -s "$base.differs" ]; then
		mapfile -t again < <(cut -d' ' -f1 "$base.differs" | grep -vx exit-status)
		if [ ${#again[@]} != 0 ]; then
			go tcp "$name" "${again[@]}" >"$base.tcp2"
			go "$how" "$name" "${again[@]}" >"$base.2"
			differing "$base.tcp2" "$base.2" | cut -d' ' -f1 >"$base.still"
			# cases that were repeated, with the same result
			cut -d' ' -f1 "$base.2" | grep -vxFf "$base.still" >"$base.settled"
			awk 'FILENAME == ARGV[1] { settled[$1]; next } !($1 in settled)' "$base.settled" "$base.first" >"$base.differs"
		fi
	fi
	grep -vxFf "$base.differs" "$base.first" | sed "s/^/$name, $how, but once only: /" | diag
	sed "s/^/$name, $how: /" "$base.differs" | diag
	ok "$name, $how: every case has the same result as on TCP" test ! -s "$base.differs"
}

lines() { wc -l <"$1"; }

# readable for programs that are not root
cp "$TOOLS/rsctl" "$TOOLS/librdmastream-preload.so" "$tmp"
chmod 755 "$tmp"
export PATH=$tmp:$PATH

load || bail "cannot load the module"
set_net loopback=1
use ring
: >/etc/resolv.conf	# no name server is to be waited for
# keeps a link up
rs_stream -b -k inet -l "$ADDR4_0" -p 4444 -n 4M -t 100000 --hold "$tmp/go" >/dev/null &
held=$!
ok "a link comes up" wait_for 30 has_link 0
wait_for 30 test -e "$tmp/go.held"
sockets_held=$(sockets)

printf '%-12s %6s %7s  %6s %6s  %6s %6s %12s\n' suite cases "ok by" "raw:" "" "ring:" "" "bytes" \
	"" "" "TCP" "same" "differ" "same" "differ" "by RDMA" >"$log/table"
for name in $SUITES; do
	why=$(absent "$name")
	if [ -n "$why" ]; then
		skip "$name" "${why//$'\n'/, }"
		printf '%-12s skipped: %s\n' "$name" "${why//$'\n'/, }" >>"$log/table"
		continue
	fi
	go tcp "$name" >"$log/$name.tcp"
	total=$(lines "$log/$name.tcp")
	ok "$name: $total cases on TCP" test "$total" -gt 1
	row=("$name" "$total" "$(grep -cE ' (ok|0)$' "$log/$name.tcp")")
	for how in raw ring; do
		compare $how "$name"
		differ=$(lines "$log/$name.$how.differs")
		row+=($((total - differ)) "$differ")
	done
	printf '%-12s %6s %7s  %6s %6s  %6s %6s %12s\n' "${row[@]}" "$bytes" >>"$log/table"
done
diag <"$log/table"
touch "$tmp/go"
wait $held
ok "the idle connection was not disturbed" test $? = 0
# a closed socket waits for its peer's FIN as long as TCP does
ok "no socket remains" wait_for 100 no_sockets || rsctl -d sockets | diag
ok "the module can be unloaded" wait_for 20 unload_module
done_testing
