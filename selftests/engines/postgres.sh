# shellcheck shell=bash disable=SC2034,SC2154	# shared with scenarios/engines.sh
# SPDX-License-Identifier: GPL-2.0-only
# PostgreSQL: a primary and two synchronous standbys that have applied what is committed.
needs="postgresql postgresql-contrib python3-psycopg2"
limit=900
least=1000000

primary=1	# so that clients, in guest 0, reach it by the network
as="setpriv --reuid=postgres --regid=postgres --clear-groups"
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)

wanted_pair() { [ "$1" = $primary ] || [ "$2" = $primary ]; }

sql() {	# VM STATEMENT
	timeout 60 psql -h "$(addr inet "$1")" -p "$port" -U postgres -qAt -v ON_ERROR_STOP=1 postgres -c "$2"
}
answers() { sql "$1" 'select 1'; }
streaming() {
	[ "$(sql $primary "select count(*) from pg_stat_replication where sync_state = 'sync' and state = 'streaming'")" = 2 ]
}

server() {	# VM OPTION...
	local vm=$1
	shift
	start_in "$vm" postgres "$as $bin/postgres -D $home/data -h 0.0.0.0 -p $port -k '' -F \
		-c max_connections=40 -c shared_buffers=32MB -c hot_standby_feedback=on \
		-c wal_sender_timeout=5s -c wal_receiver_timeout=5s -c wal_receiver_status_interval=1s $*"
	wait_for 60 answers "$vm"
}

engine_start() {
	local vm
	in_all chown postgres "$home"
	on $primary "$as $bin/initdb -D $home/data -A trust -N >/dev/null &&
		printf 'host %s all 0.0.0.0/0 trust\n' all replication >>$home/data/pg_hba.conf" || return
	server $primary -c synchronous_commit=remote_apply -c "\"synchronous_standby_names=FIRST 2 (*)\"" || return
	for vm in 0 2; do
		on $vm "timeout 60 ${by[*]} $as $bin/pg_basebackup -h $(addr inet $primary) -p $port -U postgres \
			-D $home/data -R -c fast -X stream -d application_name=standby$vm" || return
		server $vm || return
	done
	wait_for 30 streaming &&
		timeout 100 "${by[@]}" "$bin/pgbench" -h "$(addr inet $primary)" -p "$port" -U postgres -i -q postgres
}

engine_load() {
	local mode options
	for mode in select write; do
		options=(-n -c 4 -T 6 -M prepared)
		[ $mode = write ] || options+=(-S)
		timeout 60 "${by[@]}" "$bin/pgbench" -h "$(addr inet $primary)" -p "$port" -U postgres "${options[@]}" postgres |
			awk -v mode=$mode '$1 == "tps" { print "pgbench-" mode, $3 }'
	done
	# what is inserted has been written to both standbys when the command ends
	local since=${EPOCHREALTIME/./}
	sql $primary "create table if not exists bulk (text text); alter table bulk alter text set storage external;
		insert into bulk select repeat(md5(n::text), 250) from generate_series(1, 2000) n" || return
	awk -v us=$((${EPOCHREALTIME/./} - since)) 'BEGIN { print "replicated-MB/s", 2000 * 32 * 250 / us }'
}

engine_work() {	# GO PROGRESS
	timeout 600 "${by[@]}" "$engines/postgres.py" "$1" "$2" "$port" "$(addr inet $primary)" "$(addr inet 0)" "$(addr inet 2)"
}

engine_verify() {
	local vm sums=()
	for vm in $primary 0 2; do
		sums+=("$(sql $vm 'select count(*), md5(string_agg(t::text, $$ $$ order by client, seq)) from checked t')")
		sums+=("$(sql $vm 'select sum(abalance), md5(string_agg(aid || $$ $$ || abalance, $$,$$ order by aid)) from pgbench_accounts')")
	done
	printf '%s\n' "${sums[@]}"
	[ "${sums[0]}" = "${sums[2]}" ] && [ "${sums[0]}" = "${sums[4]}" ] &&
		[ "${sums[1]}" = "${sums[3]}" ] && [ "${sums[1]}" = "${sums[5]}" ] &&
		! grep -hE 'terminating|could not|timeout' "$log"/ring.postgres*
}

engine_state() {
	sql $primary 'select application_name, pid, backend_start, state, sync_state from pg_stat_replication order by 1'
	sql 0 'select pid, status, received_tli from pg_stat_wal_receiver'
	sql 2 'select pid, status, received_tli from pg_stat_wal_receiver'
}
