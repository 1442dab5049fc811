#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=2 stock=6.12,6.1 timeout=300
# "rsctl cgroup" gives the programs of a cgroup rdmastream sockets.  It needs a kernel that can
# attach BPF to update_socket_protocol(); others refuse.  Also here, because it depends on how
# a processor enters the kernel: "rsctl run" when signals interrupt system calls.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=selftests/scenarios/run-lib.sh
. "$(dirname "$0")/run-lib.sh"

load || bail "cannot load the module"
ok "a link comes up" want_link

ok "rsctl run under signals" says "restarted: .* eintr=0 ours=500 moved=0" rsctl run rs_echo signals

on_bg 1 rsctl run rs_echo serve 7001 >/dev/null
server=$!
ok "a server listens" wait_for 20 listens 1 7001

group=/sys/fs/cgroup/rsctl-run
mkdir -p $group/below
mountpoint -q /sys/fs/bpf || mount -t bpf bpf /sys/fs/bpf
within() {	# COMMAND...: in a cgroup below it
	(
		echo "$BASHPID" >$group/below/cgroup.procs
		exec "$@"
	)
}
no_foreign_pins() {	# TIMES: while another user creates the directory all the time
	local i foreign=0 other
	setpriv --reuid 1000 --regid 1000 --clear-groups \
		sh -c 'while :; do mkdir -m 755 "$0"; rmdir "$0"; done' $pins 2>/dev/null &
	other=$!
	for ((i = 0; i < $1; i++)); do
		! rsctl cgroup on rsctl-run || [ "$(stat -c %u $pins)" = 0 ] || foreign=1
		rsctl cgroup off rsctl-run
		rmdir $pins
	done
	kill $other
	return $foreign
}
on_at_once() {	# COUNT TIMES: that many at once, of which each succeeds
	local i job jobs failed=0
	for ((i = 0; i < $2; i++)); do
		jobs=()
		for ((job = 0; job < $1; job++)); do
			rsctl cgroup on rsctl-run &
			jobs+=($!)
		done
		for job in "${jobs[@]}"; do wait "$job" || failed=1; done
		rsctl cgroup off rsctl-run
	done
	return $failed
}
if rsctl cgroup on rsctl-run 2>"$tmp/err"; then
	ok "a cgroup: switched on and listed" says " $group\$" rsctl cgroup
	ok "a cgroup: switching it on again is no error" rsctl cgroup on $group
	ok "a cgroup: static C" by_rdma within rs_echo talk "$ADDR4_1" 7001 $bytes
	ok "a cgroup: Python" by_rdma within rs_echo_py "$ADDR4_1" 7001 $bytes
	ok "a cgroup: all sockets of a program in it" looks within rs_echo look
	ok "another cgroup: sockets are of TCP" says "here tcp" rs_echo look
	rm -f "$tmp/go"
	within sh -c 'until [ -e "$0" ]; do sleep 0.2; done; exec rs_echo look' "$tmp/go" >"$tmp/later" &
	rsctl cgroup off rsctl-run
	ok "a cgroup that is switched off: sockets are of TCP" says "here tcp" within rs_echo look
	ok "a cgroup that is switched off is not listed" test -z "$(rsctl -o cgroup | grep $group)"
	within rsctl cgroup on self
	ok "a cgroup: the caller's own" says " $group/below\$" rsctl cgroup
	ok "a cgroup: the caller's own is switched off" within rsctl cgroup off self
	ok "a cgroup: switched on by a path as systemd tells it" rsctl cgroup on /rsctl-run/below
	ok "a cgroup: and is in use" looks within rs_echo look
	rsctl cgroup off rsctl-run/below
	ok "a cgroup: switched on twice at once" on_at_once 2 8
	rsctl cgroup on rsctl-run
	touch "$tmp/go"
	wait $!
	ok "a cgroup: a process that was already running" looks cat "$tmp/later"
	bpf=yes
else
	ok "a cgroup: refused by a kernel without the function" grep -q 'has no update_socket_protocol' "$tmp/err"
	ok "a refused cgroup is not listed" test -z "$(rsctl -o cgroup | grep $group)"
	[ "$KERNEL" = 6.1 ] || ok "a cgroup: this kernel has the function" false
	bpf=no
fi
kill $server

ok "no socket remains" wait_for 20 no_sockets
ok "the module can be unloaded" wait_for 20 unload_module
if [ $bpf = yes ]; then
	ok "a cgroup without the module" says "here tcp" within rs_echo look
	ok "a cgroup: the module is loaded again" load
	ok "a cgroup: the module is used again" looks within rs_echo look
	rsctl cgroup off rsctl-run
	ok "a cgroup that is switched off: the module can be unloaded" wait_for 20 unload_module

	pins=/sys/fs/bpf/rdmastream-cgroup
	rsctl cgroup on rsctl-run
	ok "a cgroup: switched off by its id" rsctl cgroup off "$(stat -c %i $group)"
	ok "a cgroup that is switched off leaves no pin" test -z "$(ls $pins)"
	rsctl cgroup on rsctl-run
	rmdir $group/below $group
	ok "a removed cgroup is no longer listed" test -z "$(rsctl -o cgroup | grep -v CGROUP)"
	ok "a removed cgroup leaves no pin" test -z "$(ls $pins)"
	mkdir $group
	rsctl cgroup on rsctl-run
	rmdir $group
	mkdir $group
	ok "a new cgroup of the same name: switched on" rsctl cgroup on rsctl-run
	ok "a new cgroup of the same name has the only pin" test "$(ls $pins)" = "$(stat -c %i $group)"
	rsctl cgroup off rsctl-run
	chmod 777 $pins
	ok "a cgroup: refused if anybody may write to the directory of pins" ends 1 rsctl cgroup on rsctl-run
	rmdir $pins
	ln -s "$tmp" $pins
	ok "a cgroup: refused if the directory of pins is a symbolic link" ends 1 rsctl cgroup on rsctl-run
	rm $pins
	ok "a cgroup: refused to users" ends 1 setpriv --reuid 1000 --regid 1000 --clear-groups \
		rsctl cgroup on rsctl-run
	ok "a refused user leaves no directory of pins" eval "! test -e $pins"
	ok "a cgroup: no pin in the directory of a user who is first" no_foreign_pins 8
fi
done_testing
