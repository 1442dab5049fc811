# shellcheck shell=bash disable=SC2034,SC2154	# shared with "suite"
# SPDX-License-Identifier: GPL-2.0-only
# nginx with several workers, with sendfile and without, asked by curl, ab and wrk.
needs="nginx-light wrk apache2-utils curl"
limit=300
quick=yes

conf() {
	cat <<-END
		user root;
		worker_processes 3;
		pid nginx.pid;
		error_log error.log;
		events { worker_connections 256; }
		http {
			access_log off;
			client_max_body_size 64m;
			client_body_temp_path body;
			proxy_temp_path proxy;
			fastcgi_temp_path fastcgi;
			uwsgi_temp_path uwsgi;
			scgi_temp_path scgi;
			root $PWD/www;
			server { listen $HOST:8081 reuseport; sendfile on; tcp_nopush on; }
			server { listen $HOST:8082; sendfile off; }
			server {
				listen $HOST:8083;
				location / {
					proxy_pass http://back;
					proxy_http_version 1.1;
					proxy_set_header Connection "";
				}
			}
			upstream back { server $HOST:8081; keepalive 8; }
		}
	END
}

same() {	# PORT FILE: byte by byte
	curl -sS --max-time 60 "http://$HOST:$1/$2" | cmp - "www/$2"
}

bench() {	# PORT FILE N AB-OPTION...: all requests answered, and well
	local url=http://$HOST:$1/$2 n=$3 answer
	shift 3
	answer=$(ab -q -s 60 -n "$n" -c 8 "$@" "$url" 2>&1)
	echo "$answer"
	grep -qE "Complete requests: +$n$" <<<"$answer" && grep -qE 'Failed requests: +0$' <<<"$answer" &&
		! grep -q 'Non-2xx' <<<"$answer"
}

load() {	# PORT FILE
	local answer
	answer=$(wrk -t 2 -c 16 -d 1s --timeout 30s "http://$HOST:$1/$2")
	echo "$answer"
	grep -q 'requests in' <<<"$answer" && ! grep -qE 'Socket errors|Non-2xx' <<<"$answer"
}

run() {
	local port name names=([8081]=sendfile [8082]=no-sendfile [8083]=proxy)
	mkdir www
	echo hello >www/hello
	head -c 20000 /dev/urandom >www/medium
	head -c 1000000 /dev/urandom >www/large
	conf >nginx.conf
	nginx -p "$PWD" -c nginx.conf || return
	for port in 8081 8082 8083; do
		name=${names[port]}
		try "$name,large" same $port large
		try "$name,ab,short" bench $port medium 100
		try "$name,ab,keep-alive" bench $port medium 200 -k
		try "$name,ab,large" bench $port large 8 -k
		try "$name,ab,hello" bench $port hello 100
		try "$name,wrk" load $port medium
		try "$name,wrk,hello" load $port hello
	done
	try quit nginx -p "$PWD" -c nginx.conf -s quit
	try "has ended" wait_for 20 test ! -e nginx.pid
	! grep -E 'emerg|alert|crit|error' error.log
}
