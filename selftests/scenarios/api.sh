#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=1 kernels=6.12,6.1,debug timeout=1500 seed=1
# Programs cannot distinguish an rdmastream socket from a TCP socket.  The same cases run on
# plain TCP, and on rdmastream with each carrier, with a plain TCP end, and while the carriers
# change.  A case must note the same as on plain TCP.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"

api() {	# TITLE RS_API-OPTION...
	local title=$1
	shift
	while read -r line; do
		case $line in
		"ok "*"# SKIP"*)
			line=${line% # SKIP*}
			skip "$title: ${line#ok * }" "not for this kind" ;;
		"ok "*)		tap_result 0 "$title: ${line#ok * }" ;;
		"not ok "*)	tap_result 1 "$title: ${line#not ok * }" ;;
		"#"*)		echo "$line" ;;
		esac
	done < <(rs_api ${ONLY:+-f "$ONLY"} "$@")
}

load || bail "cannot load the module"
set_net loopback=1
api "TCP" -k tcp4 -l "$ADDR4_0" -R "$tmp/tcp4"
api "TCP, IPv6" -k tcp6 -l "$ADDR6_0" -R "$tmp/tcp6" -x
use raw
api "raw" -k rds4 -l "$ADDR4_0" -C "$tmp/tcp4"
use prelude
api "prelude" -k inet -l "$ADDR4_0" -C "$tmp/tcp4"
api "prelude, IPv6" -k rds6 -l "$ADDR6_0" -C "$tmp/tcp6" -x
mark 0
api "span" -k rds4 -l "$ADDR4_0" -w 20 -C "$tmp/tcp4"
api "span, IPv6" -k inet6 -l "$ADDR6_0" -w 20 -C "$tmp/tcp6" -x
[ -n "${ONLY-}" ] ||
	ok "connections have left their records" test "$(grown 0 spans)" -gt 300
use tcp
mark 0
api "tcp carrier" -k inet -l "$ADDR4_0" -C "$tmp/tcp4"
[ -n "${ONLY-}" ] ||
	ok "a SYN with TCP-MD5 has no room for the option" test "$(grown 0 reason:no-option-space)" -gt 0
api "tcp carrier, IPv6" -k rds6 -l "$ADDR6_0" -C "$tmp/tcp6" -x

use ring
api "plain client" -k tcp4 -s inet -l "$ADDR4_0" -C "$tmp/tcp4"
api "plain server" -k inet6 -s tcp6 -l "$ADDR6_0" -C "$tmp/tcp6" -x
# keeps a link up
rs_stream -b -k inet -l "$ADDR4_0" -n 4M -t 1200 --hold "$tmp/go" >/dev/null &
held=$!
ok "a link comes up" wait_for 30 has_link 0
wait_for 30 test -e "$tmp/go.held"
mark 0
api "ring carrier" -k rds4 -l "$ADDR4_0" -w 20 -z -C "$tmp/tcp4"
api "ring carrier, IPv6" -k inet6 -l "$ADDR6_0" -w 20 -z -C "$tmp/tcp6" -x
[ -n "${ONLY-}" ] ||
	ok "rings carried bytes" test "$(grown 0 ring-tx-bytes)" -gt 1000000

# from the first byte on, while the case runs
set_net ring_mode=1
api "to a ring meanwhile" -k inet -s rds4 -l "$ADDR4_0" -C "$tmp/tcp4"

# off the ring, and back when there is a link again
cat >"$tmp/turn" <<'END'
#!/bin/sh
rsctl drain on && rsctl drain off
END
chmod +x "$tmp/turn"
mark 0
api "turned" -k inet -l "$ADDR4_0" -w 20 -C "$tmp/tcp4" -t 40 -S "$tmp/turn >/dev/null"
[ -n "${ONLY-}" ] ||
	ok "carriers changed" test "$(grown 0 switch:drained)" -gt 20
touch "$tmp/go"
wait $held
ok "the idle connection was not disturbed" test $? = 0
ok "no socket remains" wait_for 70 no_sockets ||
	{ in_all rsctl -d sockets; in_all ss -aimno --tcp; } | diag
done_testing
