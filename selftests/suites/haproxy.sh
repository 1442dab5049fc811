# shellcheck shell=bash disable=SC2034,SC2154	# shared with "suite"
# SPDX-License-Identifier: GPL-2.0-only
# HAProxy in between, with splice and without: every byte arrives, and the ends.
# shellcheck source=selftests/suites/relays.sh
. "$(dirname "${BASH_SOURCE[0]}")/relays.sh"
needs="haproxy socat curl apache2-utils python3"
limit=240

# Debian's haproxy uses that instruction without asking.
unfit() {
	# the launcher of VMs hides it from the kernel alone
	grep -qw cx16 /proc/cpuinfo || grep -q clearcpuid=141 /proc/cmdline ||
		echo "the CPU has no cmpxchg16b"
}

conf() {
	cat <<-END
		global
			nbthread 2
		defaults
			timeout connect 20s
			timeout client 60s
			timeout server 60s
		listen tcp
			bind $HOST:9101
			mode tcp
			server echo $HOST:9001
		listen spliced
			bind $HOST:9102
			mode tcp
			option splice-request
			option splice-response
			server echo $HOST:9001
		listen http
			bind $HOST:9103
			mode http
			server files $HOST:9002
		listen http-spliced
			bind $HOST:9104
			mode http
			option splice-auto
			server files $HOST:9002
		listen nobody
			bind $HOST:9105
			mode http
			retries 0
			server none $HOST:9
	END
}

fetched() {	# PORT FILE
	curl -sS --max-time 60 "http://$HOST:$1/$2" | cmp - "$2"
}

bench() {	# PORT AB-OPTION...
	local port=$1 answer
	shift
	answer=$(ab -q -s 60 -n 40 -c 4 "$@" "http://$HOST:$port/small" 2>&1)
	echo "$answer"
	grep -qE 'Complete requests: +40$' <<<"$answer" && grep -qE 'Failed requests: +0$' <<<"$answer"
}

run() {
	local port pids=()
	files
	conf >haproxy.cfg
	socat -t 60 "TCP-LISTEN:9001,bind=$HOST,fork,reuseaddr,backlog=32" EXEC:cat &
	pids+=($!)
	python3 -m http.server --bind "$HOST" 9002 2>server.log &
	pids+=($!)
	haproxy -f haproxy.cfg -db &
	pids+=($!)
	for port in 9001 9002 9101; do
		wait_for 30 listens 0 $port || return
	done
	try tcp echoed 9101 large
	try tcp,several several 9101
	try spliced echoed 9102 large
	try spliced,several several 9102
	for port in 9103 9104; do
		try "http,$port" fetched $port large
		try "http,$port,ab" bench $port
		try "http,$port,ab,keep-alive" bench $port -k
	done
	try "nobody there" [ "$(curl -s -o /dev/null -w '%{http_code}' "http://$HOST:9105/")" = 503 ]
	kill "${pids[@]}"
	wait
	true
}
