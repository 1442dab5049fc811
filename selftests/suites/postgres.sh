# shellcheck shell=bash disable=SC2034,SC2154	# shared with "suite"
# SPDX-License-Identifier: GPL-2.0-only
# PostgreSQL: pgbench in its ways of asking, and large rows there and back.
needs="postgresql postgresql-contrib"
limit=500

as_postgres() { setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }

bench() {	# OPTION...: every transaction was processed
	local answer
	answer=$(as_postgres "$bin/pgbench" -h "$HOST" -p 5433 -n "$@" bench 2>&1)
	echo "$answer"
	grep -q 'number of failed transactions: 0 ' <<<"$answer" &&
		! grep -qE 'aborted|error|fatal' <<<"$answer"
}

sql() { as_postgres "$bin/psql" -h "$HOST" -p 5433 -qAt -v ON_ERROR_STOP=1 "${db:-bench}" "$@"; }

copied() {	# 4 MB through COPY, both ways
	base64 -w 100 large | sed 's/^/x/' >rows
	sql -c 'create table rows (n serial, text text)' -c '\copy rows (text) from rows' &&
		sql -c 'copy (select text from rows order by n) to stdout' | cmp - rows
}
wide() {	# one value of 8 MB
	[ "$(sql -c "select repeat('0123456789', 800000)" | md5sum)" = \
		"$(for i in $(seq 800); do printf '0123456789%.0s' {1..1000}; done | sed '$a\' | md5sum)" ]
}
notified() { sql -c 'listen a' -c "notify a, 'hello'" | grep -q hello; }
cancelled() {
	sql -c "set statement_timeout = '500ms'" -c 'select pg_sleep(60)' 2>&1 | grep -q 'statement timeout'
}
refused() { db=nothing sql -c 'select 1' 2>&1 | grep -q 'does not exist'; }

run() {
	bin=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)
	chown postgres .
	head -c 3000000 /dev/urandom >large
	as_postgres "$bin/initdb" -D data -A trust -N >initdb.log || return
	as_postgres "$bin/pg_ctl" -D data -l server.log -w -t 60 -o \
		"-h $HOST -p 5433 -k $PWD -F -c max_connections=40" start || return
	as_postgres "$bin/createdb" -h "$HOST" -p 5433 bench || return
	try initialise as_postgres "$bin/pgbench" -h "$HOST" -p 5433 -i -q bench
	try simple bench -c 4 -t 30
	try "several threads" bench -c 8 -j 4 -t 20
	try select bench -S -c 4 -t 100
	try extended bench -S -c 4 -t 100 -M extended
	try prepared bench -S -c 4 -t 100 -M prepared
	try "connect each time" bench -S -C -c 4 -t 10
	echo '\startpipeline
		select 1;
		select 2;
		select repeat('"'x'"', 20000);
		\endpipeline' >pipeline
	try pipeline bench -M extended -f pipeline -c 4 -t 50
	try copy copied
	try "wide row" wide
	try notify notified
	try timeout cancelled
	try "no such database" refused
	try dump eval 'as_postgres "$bin/pg_dump" -h "$HOST" -p 5433 bench >dump && tail -n 5 dump | grep -q complete'
	try stop as_postgres "$bin/pg_ctl" -D data -m fast -w stop
}
