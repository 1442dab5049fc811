#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=2 kernels=6.12,6.1,debug timeout=300
# Programs that know only TCP, under "rsctl run": each method, and what happens where none
# works.  What needs the kernel of a real processor is in cgroup.sh.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=selftests/scenarios/run-lib.sh
. "$(dirname "$0")/run-lib.sh"

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
ok "no module: exit status of a static program" ends 2 rsctl run rs_echo
ok "no module: exit status of a dynamic one" ends 7 rsctl run sh -c 'exit 7'

load || bail "cannot load the module"
ok "a link comes up" want_link

# ---- what a supervised program gets ----

ok "supervised: a static program" looks rsctl run rs_echo look
ok "supervised: without privileges" looks setpriv --reuid 1000 --regid 1000 --clear-groups \
	rsctl run rs_echo look
ok "supervised: a program that changes its user later" looks rsctl run -S \
	setpriv --reuid 1000 --regid 1000 --clear-groups rs_echo look
ok "supervised: in a network namespace created later" looks rsctl run -S unshare -n rs_echo look
ok "supervised: without the privilege to enter such a namespace: TCP" says "here tcp" setpriv --reuid 1000 --regid 1000 \
	--clear-groups rsctl run -S unshare -rn rs_echo look
ok "supervised: under signals" says "restarted: .* eintr=0 ours=500 moved=0" rsctl run rs_echo signals
diag <"$tmp/out"
ok "supervised: in threads" says ours=800 rsctl run rs_echo threads
ok "supervised: at the limit of descriptors" says "fd=-1 EMFILE" rsctl run rs_echo full
ok "a supervisor within a supervisor" looks rsctl run -S rsctl run rs_echo look
ok "the worker is killed" looks rsctl run -S sh -c 'pkill -KILL -x rsctl-worker; sleep 1; rs_echo look'
ok "the guard is killed" looks rsctl run -S sh -c 'pkill -KILL -x rsctl-guard; sleep 1; rs_echo look'
ok "no supervisor remains" wait_for 20 ends 1 pgrep 'rsctl-(guard|worker)'

# ---- what is refused ----

cp "$(type -P rs_echo)" "$tmp/setuid"
chmod 4755 "$tmp/setuid"
ok "setuid is refused" says "is setuid" rsctl run "$tmp/setuid" look
ok "setuid is refused with status 126" ends 126 rsctl run -S "$tmp/setuid" look
ok "--preload is refused for a static program" says "statically linked" rsctl run -P rs_echo look

# ---- programs ----

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
	ok "the Go server serves" by_rdma timeout 200 rsctl run rs_echo talk "$ADDR4_1" 7002 $bytes
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
# Large enough for most of it to come by a ring: on a busy machine, more than 1 MiB comes before.
file=$((4 * bytes))
on 1 "mkdir -p $tmp/www && head -c $file /dev/urandom >$tmp/www/file && echo '$conf' >$tmp/nginx.conf"
fetched() {
	mark 0
	rsctl run curl -sS --max-time 60 -o "$tmp/file" "http://$ADDR4_1:8081/file" &&
		[ "$(stat -c %s "$tmp/file")" = $file ] &&
		(($(grown 0 ring-rx-bytes) > file / 2))
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
ok "redis-benchmark" timeout 60 rsctl run redis-benchmark -h "$ADDR4_1" -t set,get -n 2000 -c 4 -d 4096 -q
ok "redis-benchmark: data goes by rings" test "$(grown 0 ring-tx-bytes)" -gt 500000
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
ok "a server without rules listens" wait_for 20 listens 1 7001
ok "a server with rules listens" wait_for 20 listens 1 7003
ok "excluded by port: plain TCP" by_tcp excluded ask 7001 -x :7001 rs_echo talk
ok "excluded by address, preloaded: plain TCP" by_tcp excluded ask 7001 -x "$ADDR4_1/24:7000-8000" rs_echo_py
ok "not included: plain TCP" by_tcp excluded ask 7001 -i 192.168.0.0/16 rs_echo talk
ok "included: RDMA" by_rdma ask 7001 -i "$ADDR4_1:7001" rs_echo talk
ok "a rule for another address has no effect" by_rdma ask 7001 -x "[fd00::]/8" -x :22 rs_echo_py
mark 1
ok "excluded by the server's rules" by_tcp no-option ask 7003 rs_echo talk
ok "a server that excludes a connection counts it" test "$(grown 1 reason:excluded)" = 1
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

kill $server

ok "no socket remains" wait_for 20 no_sockets
ok "no supervisor remains" wait_for 20 ends 1 pgrep 'rsctl-(guard|worker)'
ok "the module can be unloaded" wait_for 20 unload_module
done_testing
