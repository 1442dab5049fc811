# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# What scenarios share: TAP (../tap.sh), waiting, the module, leaks.  Source it in scripts that
# selftests/vm/run starts:
#
#	# shellcheck source=/dev/null
#	. "$LAB"
#	ok "links come up" on 1 rsctl links
#	done_testing
#
# "on N CMD..." itself is a program in the PATH; see guest/on.c.

# shellcheck source=selftests/tap.sh
. "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"

# on_bg N CMD...: run CMD in VM N meanwhile.  $! is the job: "wait $!" gives the
# status, "kill $!" ends CMD.
on_bg() {
	on "$@" &
}

# pause SECONDS: sleep; in a guest without another process
pause() {
	if [ -p /run/lab/never ]; then
		read -rt "$1" <>/run/lab/never || :
	else
		sleep "$1"
	fi
}

# wait_for SECONDS CMD...: until CMD succeeds; fails after SECONDS, more on a slow
# kernel.
wait_for() {
	local end=$((SECONDS + $1 * ${SLOW:-1}))
	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || return 1
		pause 0.2
	done
}

# value NAME [FILE]: of lines "NAME VALUE"; 0 if it is not there
value() {
	# mawk prints what exceeds 2^31 with an exponent
	awk -v name="$1" '$1 == name { v = $2 } END { printf "%.0f\n", v }' "${2--}"
}

# listens N PORT: is there a TCP listener in VM N?  For wait_for.
listens() {
	on "$1" ss -Hltn "sport = :$2" | grep -q .
}

# in_all CMD...: in each VM, one after the other.
in_all() {
	local n
	for ((n = 0; n < VM_COUNT; n++)); do
		on "$n" "$@" || return
	done
}

# load_module [PARAMETER...], unload_module: in each VM, $MODULE and what it needs.
load_module() {
	in_all modprobe -a rdma_cm || return
	in_all insmod "$MODULE" "$@"
}
unload_module() {
	in_all rmmod rdmastream
}

# Objects that nothing points to any more and that the module has allocated; after
# rmmod its functions show as bare addresses.
# 0: none; 1: some, printed; 4: this kernel does not look (stock kernels; the debug
# kernel needs kmemleak=on on its command line).  A first scan may see an object
# whose pointer is just being moved: only what a second one confirms counts.
kmemleak_check() {
	local file=/sys/kernel/debug/kmemleak report
	if ! echo scan 2>/dev/null >$file; then
		diag "kmemleak is off"
		return 4
	fi
	sleep 6		# younger objects than 5 s are not reported
	echo scan >$file
	report=$(awk '
		/^unreferenced object/ { flush() }
		/\[rdmastream\]/ || /^ +(\[<.*>\] )?0xf/ { ours = 1 }
		{ object = object $0 "\n" }
		function flush() {
			if (ours)
				printf "%s", object
			object = ""
			ours = 0
		}
		END { flush() }' $file)
	[ -z "$report" ] && return 0
	echo "$report"
	return 1
}
