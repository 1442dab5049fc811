#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=2 kernels=6.12,6.1,debug timeout=700
# Whatever ends a TCP connection from outside (an administrator, a firewall, timeouts) ends an
# rdmastream connection with the same error.  Connections survive an outage.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"
loss=$(dirname "$0")/loss.sh

load 14 || bail "cannot load the module"

# a firewall that resets connections to one port
cat >"$tmp/reject" <<'END'
#!/bin/sh
on 1 nft "add table inet no;
	add chain inet no in { type filter hook input priority 0; };
	add rule inet no in tcp dport 7400 reject with tcp reset"
END
cat >"$tmp/allow" <<'END'
#!/bin/sh
on 1 nft "add table inet no; delete table inet no"
END
# a firewall that drops only TCP
sed 's/reject with tcp reset/drop/' "$tmp/reject" >"$tmp/drop"
chmod +x "$tmp/reject" "$tmp/allow" "$tmp/drop"

cut() {	# KIND CASE CUT [MEND]: what the program sees
	local kind=$1 server out
	on_bg 1 rs_cut -s -k "$kind" -p 7400
	server=$!
	wait_for 20 listens 1 7400
	out=$(rs_cut -c "$(addr "$kind" 1)" -k "$kind" -p 7400 --cut "$3" --mend "${4-true}" "$2" 2>&1)
	eval "${4-true}" 2>/dev/null
	kill $server
	wait $server
	echo "$out"
}

same() {	# CASE KIND CUT [MEND]
	local got
	got=$(cut "$2" "$1" "${@:3}")
	echo "TCP:  ${tcp[$1]}"
	echo "here: $got"
	[ "$got" = "${tcp[$1]}" ]
}

declare -A tcp expect=(
	[killed]=poll [rejected]=poll [user_timeout]=poll [keepalive]=poll
	[outage]="survived," [fin]="[(4,"
) cuts=(
	[killed]="ss -K -t 'sport = :%LPORT'"
	[rejected]="$tmp/reject"
	[user_timeout]="$loss drop-all 1"
	[keepalive]="$loss drop-all 1"
	[outage]="$loss drop-all 1"
	[fin]="$tmp/drop"
) mends=(
	[killed]=true
	[rejected]="$tmp/allow"
	[user_timeout]="$loss pass 1"
	[keepalive]="$loss pass 1"
	[outage]="$loss pass 1"
	[fin]="$tmp/allow"
)

for what in killed rejected user_timeout keepalive outage fin; do
	tcp[$what]=$(cut tcp4 "$what" "${cuts[$what]}" "${mends[$what]}")
	ok "TCP: $what" test "${tcp[$what]%% *}" = "${expect[$what]}"
	diag "${tcp[$what]}"
done
for how in raw tcp ring; do
	use $how
	mark 0
	[ $how != ring ] || ok "a link comes up" want_link
	for what in killed rejected user_timeout keepalive outage fin; do
		# documented differences: a firewall for TCP does not stop data on a
		# ring; the report of a lost link is data to TCP, which then sends no probes
		case "$how $what" in
		"ring rejected" | "ring keepalive")
			skip "$how: $what" "a stated difference"
			continue ;;
		esac
		[ $how != ring ] || want_link
		ok "$how: $what" same "$what" inet "${cuts[$what]}" "${mends[$what]}"
	done
done
ok "rings carried bytes" test "$(grown 0 ring-tx-bytes)" -gt 10000
ok "no socket remains" wait_for 100 no_sockets
done_testing
