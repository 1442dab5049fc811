# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# For "scripts/bench hosts": another machine, reached by ssh, takes the place of VM 1, and
# this one that of VM 0.  scripts/bench sources this file, with $top, $out and $log.
#
#	ssh_connect HOST	copies the programs to both, into $ssh_dir, and remembers
#				the settings; "on N CMD..." is a program in there
#	ssh_disconnect		restores the settings and removes everything

# shellcheck disable=SC2154	# set by scripts/bench
settings=(ring_mode link_idle_ms)
ssh_dir='' ssh_host='' old_here='' old_there=''

there() { $ssh "$ssh_host" "$@"; }

ssh_disconnect() {
	trap - EXIT
	# shellcheck disable=SC2086	# NAME=VALUE words
	{
		[ -z "$old_here" ] || sysctl -q -w $old_here
		[ -z "$old_there" ] || there sysctl -q -w $old_there
		there rm -rf "$ssh_dir"
		$ssh -O exit "$ssh_host"
	} >>"$log" 2>&1 || :
	rm -rf "$ssh_dir"
}

read_settings() { sysctl "${settings[@]/#/net.rdmastream.}" | sed 's/ = /=/' | tr '\n' ' '; }

# The same program as in the virtual machines.  A command on the other machine ends together
# with its "on", because then its input ends; otherwise the input never does.
write_on() {
	mkfifo "$ssh_dir/input"
	cat >"$ssh_dir/on" <<-END
		#!/bin/bash
		n=\$1
		shift
		[ \$# != 1 ] || set -- bash -c "\$1"
		[ "\$n" != 0 ] || exec "\$@"
		exec $ssh $ssh_host "exec 3<&0
			\$(printf '%q ' "\$@") </dev/null &
			pid=\\\$!
			{ cat; kill \\\$pid; } <&3 >/dev/null 2>&1 &
			wait \\\$pid
			status=\\\$?
			kill \\\$! 2>/dev/null
			exit \\\$status" <>"$ssh_dir/input"
	END
	chmod +x "$ssh_dir/on"
}

ssh_connect() {
	ssh_host=$1
	# the same directory on both machines
	ssh_dir=$(mktemp -d /tmp/rdmastream-bench.XXXXXX)
	ssh="${BENCH_SSH:-ssh} -o BatchMode=yes -o ControlMaster=auto -o ControlPath=$ssh_dir/ssh -o ControlPersist=60"
	trap ssh_disconnect EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	cp "$top/build/selftests/bench"/{rs_bench,smc_setup} "$top/userspace-tools/rsctl" "$ssh_dir"
	tar -C "$ssh_dir" -c rs_bench smc_setup rsctl | there "mkdir -p $ssh_dir && tar -C $ssh_dir -x" 2>>"$log" ||
		{ tail -n 5 "$log" >&2; die "cannot reach $ssh_host"; }
	old_here=$(read_settings 2>>"$log") || die "rdmastream is not loaded on this machine"
	old_there=$(there "$(declare -p settings); $(declare -f read_settings); read_settings" 2>>"$log") || old_there=''
	[ -n "$old_there" ] || die "rdmastream is not loaded on $ssh_host"
	write_on
}
