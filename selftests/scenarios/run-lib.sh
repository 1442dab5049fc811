# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# For scenarios of "rsctl run" and "rsctl cgroup": what programs got.

ends() { "${@:2}" >/dev/null 2>&1; [ $? = "$1" ]; }	# STATUS COMMAND...
looks() {	# COMMAND...: 8 sockets, all ours, all as they were asked for
	"$@" >"$tmp/out" 2>&1
	cat "$tmp/out"
	[ "$(grep -c 'fd=1 domain=0 protocol=6 cloexec=1 nonblock=1 uid=0 here ours' "$tmp/out")" = 8 ]
}
says() {	# WORDS COMMAND...
	"${@:2}" >"$tmp/out" 2>&1
	cat "$tmp/out"
	grep -q -- "$1" "$tmp/out"
}

bytes=$((2 * 1024 * 1024))
# Checks that the data used rdmastream, most of it RDMA.
by_rdma() {	# COMMAND...
	mark 0
	"$@" 2>&1 || return
	growth 0 | grep -E '(active-opens|x-bytes) [1-9]'
	(($(grown 0 active-opens) >= 1 && $(grown 0 ring-tx-bytes) > bytes / 2)) &&
		(($(grown 0 ring-rx-bytes) > bytes / 2))
}
