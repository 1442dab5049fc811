#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=1 kernels=6.12,6.1,debug timeout=400
# A program cannot tell our socket from TCP's: the same cases on plain TCP, and
# on ours with each carrier.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"

api() {	# TITLE RS_API-OPTION...
	local title=$1
	shift
	while read -r line; do
		case $line in
		"ok "*"# SKIP"*)	skip "$title: $(cut -d' ' -f3- <<<"${line% # SKIP*}")" "not for this kind" ;;
		"ok "*)		ok "$title: $(cut -d' ' -f3- <<<"$line")" true ;;
		"not ok "*)	ok "$title: $(cut -d' ' -f4- <<<"$line")" false ;;
		"#"*)		echo "$line" ;;
		esac
	done < <(rs_api "$@")
}

load || bail "cannot load the module"
set_net upgrade_self=1
api "TCP" -k tcp4
api "TCP, IPv6" -k tcp6
use raw
api "raw" -k rds4 -l "$ADDR4_0"
use tcp
api "tcp carrier" -k inet -l "$ADDR4_0"
api "tcp carrier, IPv6" -k rds6 -l "$ADDR6_0"

use ring
# keeps a link up meanwhile
rs_stream -b -k inet -l "$ADDR4_0" -n 4M -t 200 --hold "$tmp/go" >/dev/null &
held=$!
ok "a link comes up" wait_for 30 has_link 0
wait_for 30 test -e "$tmp/go.held"
mark 0
api "ring carrier" -k rds4 -l "$ADDR4_0" -w 20
api "ring carrier, IPv6" -k inet6 -l "$ADDR6_0" -w 20
ok "rings carried bytes" test "$(grown 0 ring-tx-bytes)" -gt 1000000
touch "$tmp/go"
wait $held
ok "the held connection was not disturbed" test $? = 0
ok "no socket is left" wait_for 20 no_sockets
done_testing
