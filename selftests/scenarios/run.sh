#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=2 stock=6.12,6.1 timeout=600
# Programs that know only TCP, under "rsctl run": each method, and what happens where none
# works.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"

# Readable for every user.
mkdir "$tmp/bin"
cp "$TOOLS/rsctl" "$TOOLS"/*.so "$BIN/rs_echo" "$tmp/bin"
chmod -R a+rX "$tmp"
PATH=$tmp/bin:$PATH

# Without the module: TCP, one warning for a program and its children, and the program's exit
# status.
on_tcp() {	# COMMAND...
	"$@" >"$tmp/out" 2>"$tmp/err"
	cat "$tmp/out" "$tmp/err"
	[ "$(grep -c 'using TCP' "$tmp/err")" = 1 ] && ! grep -q ours "$tmp/out"
}
ok "no module: a static program" on_tcp rsctl run rs_echo look
ok "no module: a dynamic one with children" on_tcp rsctl run sh -c \
	'curl -s 127.0.0.1:1; curl -s 127.0.0.1:1; exit 0'
ok "no module: supervised children" on_tcp rsctl run -S sh -c \
	'rs_echo look; curl -s 127.0.0.1:1; exit 0'
ends() { "${@:2}" >/dev/null 2>&1; [ $? = "$1" ]; }
ok "no module: exit status of a static program" ends 2 rsctl run rs_echo
ok "no module: exit status of a dynamic one" ends 7 rsctl run sh -c 'exit 7'

load || bail "cannot load the module"
ok "a link comes up" want_link

# ---- what a supervised program gets ----

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
ok "sockets of a static program" looks rsctl run rs_echo look
ok "... without privileges" looks setpriv --reuid 1000 --regid 1000 --clear-groups \
	rsctl run rs_echo look
ok "... that changes its user later" looks rsctl run -S \
	setpriv --reuid 1000 --regid 1000 --clear-groups rs_echo look
ok "... in a network namespace created later" looks rsctl run -S unshare -n rs_echo look
ok "... without the privilege to enter it: TCP" says "here tcp" setpriv --reuid 1000 --regid 1000 \
	--clear-groups rsctl run -S unshare -rn rs_echo look
ok "... under signals" says "restarted: .* eintr=0 ours=500 moved=0" rsctl run rs_echo signals
diag <"$tmp/out"
ok "... in threads" says ours=800 rsctl run rs_echo threads
ok "... at the limit of descriptors" says "fd=-1 EMFILE" rsctl run rs_echo full
ok "a supervisor within a supervisor" looks rsctl run -S rsctl run rs_echo look
ok "the worker is killed" looks rsctl run -S sh -c 'pkill -KILL -x rsctl-worker; sleep 1; rs_echo look'
ok "the guard is killed" looks rsctl run -S sh -c 'pkill -KILL -x rsctl-guard; sleep 1; rs_echo look'
ok "no supervisor remains" wait_for 20 ends 1 pgrep 'rsctl-(guard|worker)'

# ---- what is refused ----

cp "$(type -P rs_echo)" "$tmp/setuid"
chmod 4755 "$tmp/setuid"
ok "setuid is refused" says "is setuid" rsctl run "$tmp/setuid" look
ok "... with status 126" ends 126 rsctl run -S "$tmp/setuid" look
ok "--preload is refused for a static program" says "statically linked" rsctl run -P rs_echo look

# ---- programs ----

bytes=$((2 * 1024 * 1024))
# Checks that the data used rdmastream, most of it RDMA.
by_rdma() {	# COMMAND...
	mark 0
	"$@" 2>&1 || return
	growth 0 | grep -E '(active-opens|x-bytes) [1-9]'
	(($(grown 0 active-opens) >= 1 && $(grown 0 ring-tx-bytes) > bytes / 2)) &&
		(($(grown 0 ring-rx-bytes) > bytes / 2))
}
talk() {	# NAME PROGRAM...: one that is told host, port, bytes
	ok "$1" by_rdma timeout 200 rsctl run -v "${@:2}" "$ADDR4_1" 7001 $bytes
}

on_bg 1 rsctl run rs_echo serve 7001 >/dev/null
server=$!
ok "a static server listens" wait_for 20 listens 1 7001
talk "static C" rs_echo talk
talk "Python" rs_echo_py
talk "a static child of a shell" -S sh -c 'rs_echo talk "$@"; exit $?' sh
if [ -x "$BIN/rs_echo_go" ]; then
	talk "Go, linked statically" rs_echo_go talk
	talk "Go, linked dynamically" rs_echo_cgo talk
	on_bg 1 rsctl run rs_echo_go serve 7002 >/dev/null
	go=$!
	ok "a Go server listens" wait_for 20 listens 1 7002
	ok "... and serves" by_rdma timeout 200 rsctl run rs_echo talk "$ADDR4_1" 7002 $bytes
	kill $go
else
	skip "Go" "no go when the programs were built"
fi
if [ -e "$BIN/RsEcho.class" ] && type -P java >/dev/null; then
	talk "Java" java -Xint -Xshare:auto -cp "$BIN" RsEcho
else
	skip "Java" "no java, or no javac when the programs were built"
fi
kill $server

conf="user root;
worker_processes 2;
pid $tmp/nginx.pid;
error_log $tmp/error.log;
events { worker_connections 64; }
http {
	access_log off;
	client_body_temp_path $tmp/body;
	root $tmp/www;
	server { listen 8081; }
}"
on 1 "mkdir -p $tmp/www && head -c $bytes /dev/urandom >$tmp/www/file && echo '$conf' >$tmp/nginx.conf"
fetched() {
	mark 0
	rsctl run curl -sS --max-time 60 -o "$tmp/file" "http://$ADDR4_1:8081/file" &&
		[ "$(stat -c %s "$tmp/file")" = $bytes ] &&
		(($(grown 0 ring-rx-bytes) > bytes / 2))
}
if type -P nginx curl >/dev/null; then
	ok "nginx starts" on 1 rsctl run nginx -e "$tmp/error.log" -c "$tmp/nginx.conf"
	ok "nginx listens" wait_for 20 listens 1 8081
	ok "curl from nginx, whose workers inherit the library" fetched
	on 1 nginx -e "$tmp/error.log" -c "$tmp/nginx.conf" -s quit
else
	skip "nginx and curl" "not installed"
fi

on_bg 1 "exec rsctl run redis-server --port 6379 --bind 0.0.0.0 --protected-mode no --save '' --appendonly no" >/dev/null
redis=$!
ok "redis-server listens" wait_for 20 listens 1 6379
mark 0
ok "redis-benchmark" timeout 60 rsctl run redis-benchmark -h "$ADDR4_1" -t set,get -n 500 -c 4 -d 4096 -q
ok "... over RDMA" test "$(grown 0 ring-tx-bytes)" -gt 500000
kill $redis

# ---- which connections ----

# Checks that it was plain TCP, and that VM 0 has counted the reason.
by_tcp() {	# REASON COMMAND...
	mark 0
	"${@:2}" 2>&1 || return
	growth 0 | grep '^reason:.* [1-9]'
	[ "$(grown 0 "reason:$1")" = 1 ] && [ "$(grown 0 framed)" = 0 ]
}
ask() {		# PORT RSCTL-RUN-OPTION...
	timeout 100 rsctl run "${@:2}" "$ADDR4_1" "$1" $bytes
}
on_bg 1 rsctl run rs_echo serve 7001 >/dev/null
server=$!
on_bg 1 rsctl run -x :7004 -x "$ADDR4_0" rs_echo serve 7003 >/dev/null
picky=$!
ok "servers listen" wait_for 20 listens 1 7001
ok "... also the one with rules" wait_for 20 listens 1 7003
ok "excluded by port: plain TCP" by_tcp excluded ask 7001 -x :7001 rs_echo talk
ok "excluded by address, preloaded: plain TCP" by_tcp excluded ask 7001 -x "$ADDR4_1/24:7000-8000" rs_echo_py
ok "not included: plain TCP" by_tcp excluded ask 7001 -i 192.168.0.0/16 rs_echo talk
ok "included: RDMA" by_rdma ask 7001 -i "$ADDR4_1:7001" rs_echo talk
ok "a rule for another address has no effect" by_rdma ask 7001 -x "[fd00::]/8" -x :22 rs_echo_py
mark 1
ok "excluded by the server's rules" by_tcp no-option ask 7003 rs_echo talk
ok "... which counts that" test "$(grown 1 reason:excluded)" = 1
kill $picky
refuses() {
	python3 - <<-'END'
		import errno, socket, struct
		good = struct.pack("16sBBHHH", bytes(16), 0, 1, 0, 65535, 0)
		bad = [good[:-1], good + b"x", good * 33, good[:16] + b"\x81" + good[17:],
		       good[:17] + b"\x02" + good[18:], good[:18] + b"\xff\xff\x01\x00" + good[22:],
		       good[:22] + b"\x01\x00"]
		def told(sock, option, rules):
		    try:
		        sock.setsockopt(257, option, rules)
		    except OSError as e:
		        return errno.errorcode[e.errno]
		s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 257)
		tcp = socket.socket()
		assert [told(s, 1, b) for b in bad] == ["EINVAL"] * len(bad)
		assert told(s, 1, good * 32) is None and told(s, 1, good) is None and told(s, 1, b"") is None
		assert told(s, 3, good) == told(tcp, 1, good) == "ENOPROTOOPT"
		assert told(s, 2, good) == "EINVAL"
		s.listen()
		assert told(s, 1, good) == "EISCONN"
	END
}
ok "invalid rules are refused" refuses

# ---- a cgroup ----

group=/sys/fs/cgroup/rsctl-run
mkdir -p $group/below
mountpoint -q /sys/fs/bpf || mount -t bpf bpf /sys/fs/bpf
within() {	# COMMAND...: in a cgroup below it
	(
		echo "$BASHPID" >$group/below/cgroup.procs
		exec "$@"
	)
}
if rsctl cgroup on rsctl-run 2>"$tmp/err"; then
	ok "a cgroup: switched on and listed" says " $group\$" rsctl cgroup
	ok "... switching it on again is no error" rsctl cgroup on $group
	ok "... static C" by_rdma within rs_echo talk "$ADDR4_1" 7001 $bytes
	ok "... Python" by_rdma within rs_echo_py "$ADDR4_1" 7001 $bytes
	ok "... all its sockets" looks within rs_echo look
	ok "... not the sockets of other cgroups" says "here tcp" rs_echo look
	rm -f "$tmp/go"
	within sh -c 'until [ -e "$0" ]; do sleep 0.2; done; exec rs_echo look' "$tmp/go" >"$tmp/later" &
	rsctl cgroup off rsctl-run
	ok "... not when it is off" says "here tcp" within rs_echo look
	ok "... which is no longer listed" test -z "$(rsctl -o cgroup | grep $group)"
	rsctl cgroup on rsctl-run
	touch "$tmp/go"
	wait $!
	ok "... also a process that was already running" looks cat "$tmp/later"
	bpf=yes
else
	ok "a cgroup: refused by a kernel without the function" grep -q 'has no update_socket_protocol' "$tmp/err"
	ok "... without traces" test -z "$(rsctl -o cgroup | grep $group)"
	[ "$KERNEL" = 6.1 ] || ok "... but it should" false
	bpf=no
fi
kill $server

ok "no socket remains" wait_for 20 no_sockets
ok "no supervisor remains" wait_for 20 ends 1 pgrep 'rsctl-(guard|worker)'
ok "the module can be unloaded" wait_for 20 unload_module
if [ $bpf = yes ]; then
	ok "a cgroup without the module" says "here tcp" within rs_echo look
	ok "... the module is loaded again" load
	ok "... and is used" looks within rs_echo look
	rsctl cgroup off rsctl-run
	ok "... it can be unloaded" wait_for 20 unload_module

	pins=/sys/fs/bpf/rdmastream-cgroup
	rsctl cgroup on rsctl-run
	ok "... switched off by its id" rsctl cgroup off "$(stat -c %i $group)"
	ok "... which leaves no pin" test -z "$(ls $pins)"
	rsctl cgroup on rsctl-run
	rmdir $group/below $group
	ok "... a removed cgroup is no longer listed" test -z "$(rsctl -o cgroup | grep -v CGROUP)"
	ok "... and leaves no pin" test -z "$(ls $pins)"
	mkdir $group
	rsctl cgroup on rsctl-run
	rmdir $group
	mkdir $group
	ok "... a new cgroup of the same name" rsctl cgroup on rsctl-run
	ok "... has the only pin" test "$(ls $pins)" = "$(stat -c %i $group)"
	rsctl cgroup off rsctl-run
	chmod 777 $pins
	ok "... refused: anybody may write to the directory of pins" ends 1 rsctl cgroup on rsctl-run
	rmdir $pins
	ln -s "$tmp" $pins
	ok "... refused: the directory of pins is a symbolic link" ends 1 rsctl cgroup on rsctl-run
	rm $pins
fi
done_testing
