#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# vm: n=2 kernels=6.12,6.1,debug timeout=300
# Wireshark's dissector decodes everything on the wire, including each byte of DATA.
# shellcheck source=selftests/scenarios/lib.sh
. "$(dirname "$0")/lib.sh"

lua=$VM_TOP/userspace-tools/wireshark/rdmastream.lua

load || bail "cannot load the module"
want_link || bail "no link comes up"
tcpdump -i eth0 -s 0 -B 16384 -U -w "$tmp/capture" tcp 2>"$tmp/tcpdump" &
tcpdump=$!
wait_for 30 grep -q listening "$tmp/tcpdump" || bail "tcpdump does not listen"
counters 0 >"$tmp/before"
ok "a stream on a ring" carried ring 300000 inet inet
use prelude
ok "a short connection on plain TCP" carried tcp 5000 inet inet
ok "a longer connection starts on plain TCP" carried tcp 30000 inet inet
cp "$tmp/before" "$tmp/mark.0"
growth 0 >"$tmp/growth"
sleep 1		# what is captured comes with a delay
kill -INT $tcpdump
wait $tcpdump

# One line per packet with records or the option; values of a field are joined by commas.
tshark -X "lua_script:$lua" -n -r "$tmp/capture" -Y 'rdmastream or rdmastream_option' \
	-T fields -E "separator=|" -e rdmastream_option.role -e rdmastream.hello.role \
	-e rdmastream.type -e rdmastream.data.len -e rdmastream.malformed \
	-e rdmastream.prelude.len -e rdmastream_option.prelude \
	>"$tmp/seen" 2>"$tmp/tshark" || diag <"$tmp/tshark"
option=1 hello=2 type=3 len=4 malformed=5 prelude=6 bit=7

values() { cut -d '|' -f "$1" "$tmp/seen" | tr , '\n' | grep .; }	# FIELD
has() {		# FIELD VALUE...: all of them
	local value field=$1
	shift
	values "$field" | sort | uniq -c
	for value; do values "$field" | grep -qx "$value" || return; done
}
every_byte() {
	local seen counted
	seen=$(for field in $len $prelude; do values $field; done | awk '{ n += $1 } END { print n + 0 }')
	counted=$(awk '/^tcp-[tr]x-bytes / { n += $2 } END { print n + 0 }' "$tmp/growth")
	echo "bytes of streams: seen $seen, counted $counted"
	[ "$seen" = "$counted" ] && [ "$seen" -gt 0 ]
}
none() { [ -s "$tmp/seen" ] && ! values "$1"; }

ok "SYN, SYN-ACK and CONFIRM" has $option 1 2 3
ok "both HELLOs" has $hello 1 2
ok "DATA, ACK, GRANT, SWITCH, FIN" has $type 1 2 3 4 8
ok "with and without a prelude" has $bit 0 1
ok "every byte of DATA and of preludes" every_byte
ok "nothing is malformed" none $malformed
done_testing
