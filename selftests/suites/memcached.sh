# shellcheck shell=bash disable=SC2034,SC2154	# shared with "suite"
# SPDX-License-Identifier: GPL-2.0-only
# memcached with four threads, and libmemcached's tests of its protocol.
needs="memcached libmemcached-tools"
limit=200

there_and_back() {	# FILE
	memccp --servers="$HOST:11311" "$1" && memccat --servers="$HOST:11311" "$1" | head -c -1 | cmp - "$1"
}

many() {
	local i
	for i in $(seq 20); do
		head -c $((i * 2000)) /dev/urandom | base64 -w 0 >"many.$i"
	done
	memccp --servers="$HOST:11311" many.* || return
	for i in $(seq 20); do
		memccat --servers="$HOST:11311" "many.$i" | head -c -1 | cmp - "many.$i" || return
	done
}

capable() {	# its cases: "binary noop      [pass]"
	memccapable -h "$HOST" -p 11311 -t 20 2>&1 | tee capable
	sed -n 's/ *\[\(pass\|FAIL\|skipped\|Not supported\)\].*/ \1/Ip' capable | while read -r line; do
		result "$(tr ' ' - <<<"${line% *}")" "$(sed 's/pass/ok/' <<<"${line##* }")"
	done
}

run() {
	memcached -u root -l "$HOST" -p 11311 -t 4 -I 8m -m 128 &
	wait_for 20 listens 0 11311 || return
	capable
	head -c 900000 /dev/urandom | base64 -w 0 >large
	try large there_and_back large
	try many many
	try statistics memcstat --servers="$HOST:11311"
	try ping memcping --servers="$HOST:11311"
	kill $!
	wait $!
}
