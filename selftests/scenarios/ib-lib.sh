# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
# For scenarios with the profile "ib" of rs_hca, beside lib.sh: the subnet, and links over it.  Their
# streams are between the addresses of Ethernet interfaces, so they go on whatever happens to it.

params=/sys/module/rs_hca/parameters

sm() { echo "$*" >$params/sm; }	# what the subnet manager does
add_addr() {	# HOST PREFIX INTERFACE
	on "$1" ip addr add "$2.$(($1 + 1))/24" dev "$3" && on "$1" ip link set "$3" up
}

# Links that are up, by their own address.
link() {	# ADDRESS
	rsctl -j links | jq -e --arg own "$1" 'any(.[]; .state == "up" and (.local | tostring | contains($own)))'
}
ids() { rsctl -j links | jq -r '.[] | select(.state == "up") | .id' | sort | xargs; }
end_links() {
	in_all rsctl drain on >/dev/null
	wait_for 20 no_links
}
other() { have_links && [ "$(ids)" != "$1" ]; }	# IDS

more() { [ "$(counter 0 "$1")" -gt $(($2 + 100000)) ]; }	# COUNTER BEFORE
goes_on() {	# COUNTER
	local before
	before=$(counter 0 "$1")
	wait_for 20 more "$1" "$before"
}
on_rings() { wait_for 20 have_rings && goes_on ring-tx-bytes; }

begin_over_eth() {
	local i
	for i in 0 1; do add_addr $i 10.78.0 eth0; done
	# shellcheck disable=SC2034	# for lib.sh
	ADDR4_1=10.78.0.2
	hold=$(fresh hold)
	begin_streams -C 2 -n 1M --until "$hold" --pace 50 -t 280
	hurry
}
end_over_eth() {	# NAME
	in_all touch "$hold"
	whole_streams "$1"
	in_all ip addr flush dev eth0 scope global
}

stays() {	# NAME CMD...: the link does not notice that
	local had
	had=$(ids)
	ok "$1" "${@:2}"
	sleep 1
	ok "$1: the link carries data" on_rings
	ok "$1: it is the same link" test "$(ids)" = "$had"
}
comes() {	# NAME
	hurry
	ok "$1: a link comes up" wait_for 20 have_links
	ok "$1: it carries data" on_rings
}
says() { in_all rsctl peers | tee "$tmp/peers" | grep -q "$1"; }	# REASON
# Now there are no new links, for this reason; the streams go on.
fails() {	# NAME REASON
	end_links
	hurry
	ok "$1: there is no link" wait_for 20 says "$2"
	diag <"$tmp/peers"
	ok "$1: the streams go on" goes_on tcp-tx-bytes
	ok "$1: there is still no link" no_links
}
