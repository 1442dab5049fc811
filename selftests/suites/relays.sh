# shellcheck shell=bash disable=SC2034,SC2154	# shared with "suite"
# SPDX-License-Identifier: GPL-2.0-only
# HAProxy and socat in between: every byte arrives, and the ends of streams.
needs="haproxy socat curl apache2-utils python3"
limit=240
quick=yes

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

echoed() {	# PORT FILE: back comes what went, then the end
	timeout 60 socat -t 60 - "TCP:$HOST:$1" <"$2" | cmp - "$2"
}

several() {	# PORT
	local i status=0 pids=()
	for i in 1 2 3 4; do
		echoed "$1" large &
		pids+=($!)
	done
	for i in "${pids[@]}"; do
		wait "$i" || status=1
	done
	return $status
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
	head -c 1000000 /dev/urandom >large
	head -c 10000 /dev/urandom >small
	conf >haproxy.cfg
	socat -t 60 "TCP-LISTEN:9001,bind=$HOST,fork,reuseaddr,backlog=32" EXEC:cat &
	pids+=($!)
	socat -t 60 "TCP-LISTEN:9003,bind=$HOST,fork,reuseaddr,backlog=32" "TCP:$HOST:9001" &
	pids+=($!)
	python3 -m http.server --bind "$HOST" 9002 2>server.log &
	pids+=($!)
	haproxy -f haproxy.cfg -db &
	pids+=($!)
	for port in 9001 9002 9003 9101; do
		wait_for 30 listens $port || return
	done
	try "socat,small" echoed 9001 small
	try "socat,large" echoed 9001 large
	try "socat,several" several 9001
	try "socat,relayed" echoed 9003 large
	try "socat,relayed,several" several 9003
	try "haproxy,tcp" echoed 9101 large
	try "haproxy,tcp,several" several 9101
	try "haproxy,spliced" echoed 9102 large
	try "haproxy,spliced,several" several 9102
	for port in 9103 9104; do
		try "haproxy,http,$port" fetched $port large
		try "haproxy,http,$port,ab" bench $port
		try "haproxy,http,$port,ab,keep-alive" bench $port -k
	done
	try "haproxy,nobody there" [ "$(curl -s -o /dev/null -w '%{http_code}' "http://$HOST:9105/")" = 503 ]
	kill "${pids[@]}"
	wait
	true
}
