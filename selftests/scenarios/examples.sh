#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=2 kernels=6.12,6.1 timeout=300
# The programs of examples/ open sockets of ours themselves, and their bytes go by RDMA.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"

examples=$BIN/examples

load || bail "cannot load the module"
ok "a link comes up" want_link

serve() {	# NAME PORT COMMAND...
	on_bg 1 "exec ${*:3}" >/dev/null
	server=$!
	ok "$1 listens" wait_for 60 listens 1 "$2"
}
by_rdma() {	# COMMAND...
	mark 0
	timeout 60 "$@" | tee "$tmp/said" || return
	growth 0 | grep -E '(active-opens|ring-.x-bytes) [1-9]'
	grep -qx '4194304 bytes came back' "$tmp/said" &&
		(($(grown 0 ring-tx-bytes) > 1000000 && $(grown 0 ring-rx-bytes) > 1000000))
}
talk() {	# LANGUAGE EXAMPLE PORT
	if [ -e "$examples/$2" ]; then
		ok "a client in $1" by_rdma "$examples/$2" "$ADDR4_1" "$3"
	else
		skip "a client in $1" "no compiler when the programs were built"
	fi
}

serve "a server in C" 7001 "$examples/echo" serve 7001
talk C echo 7001
talk Python echo.py 7001
talk Go echo_go 7001
talk Rust echo_rs 7001
kill $server

if [ -e "$examples/Echo.class" ] && type -P java >/dev/null; then
	serve "a server in Java" 7002 "$examples/serve.py" 7002 \
		java -Xint -Xshare:auto -cp "$examples" Echo
	talk C echo 7002
	kill $server
else
	skip "a server in Java" "no java, or no javac when the programs were built"
fi
# As systemd reads them.  It does not look for a command with "-", so this is left out.
units=$tmp/units
verified() {	# UNIT
	systemd-analyze verify "$units/$1" 2>&1 | tee "$tmp/said"
	[ ! -s "$tmp/said" ]
}
drop_in() {
	mkdir "$units/echo.service.d" &&
		printf '[Service]\nExecStart=%s\n' "$(type -P true)" >"$units/echo.service" || return
	sed "s,+-rsctl,+$units/rsctl," "$VM_TOP/examples/systemd/rdmastream.conf" \
		>"$units/echo.service.d/rdmastream.conf"
	grep "^ExecStartPre=+$units/rsctl " "$units/echo.service.d/rdmastream.conf" &&
		verified echo.service
}
of_slice() {
	sed "s,=rsctl,=$units/rsctl," "$VM_TOP/examples/systemd/rdmastream-cgroup@.service" \
		>"$units/rdmastream-cgroup@system.service"
	verified rdmastream-cgroup@system.service
}
if type -P systemd-analyze >/dev/null; then
	mkdir "$units" && ln -s "$(type -P true)" "$units/rsctl"
	ok "the drop-in for systemd" drop_in
	ok "the unit for a slice" of_slice
else
	skip "the units for systemd" "no systemd-analyze"
fi
ok "no socket is left" wait_for 20 no_sockets
done_testing
