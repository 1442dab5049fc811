# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Streams whose link dies.  Source it behind lib.sh; it loads the module.

load 14 1500 || bail "cannot load the module"
# streams that are idle keep their rings until the link is lost
set_net ring_idle_ms=600000
links=()
conns=4
[ "$KERNEL" != debug ] || conns=2

least=500000
rings_carry() {
	local tx rx
	read -r tx rx <<<"$(grown 0 ring-tx-bytes ring-rx-bytes)"
	[ "$tx" -gt $least ] && [ "$rx" -gt $least ]
}
remember() {
	local vm
	for vm in 0 1; do
		mark $vm
		links[vm]=$(on $vm rsctl -j links | jq -c '[.[] | select(.state == "up") | .id]')
	done
}
# No stream uses an old link any more, and some have resumed.  A stream that was just
# changing its ring is on tcp anyway.
resumed() {
	local vm
	[ $(($(grown 0 resumes) + $(grown 1 resumes))) -gt 0 ] || return
	for vm in 0 1; do
		on $vm rsctl -j sockets |
			jq -e --argjson links "${links[vm]}" \
				'all(.[]; .tx.link, .rx.link | IN($links[]) | not)' >/dev/null ||
			return
	done
}

# Streams in both directions; returns when they use their rings.
start() {	# busy|idle|full
	local more=() there=(rings_carry)
	go=$(fresh go)
	case $1 in
	busy)	more=(-n 1M --until "$go" --pace 200) ;;
	# on a slow kernel, more data is sent on TCP before there are rings
	idle)	more=(-n $((4 * SLOW + 2))M --hold-at "$((4 * SLOW))M" --hold "$go")
		there=(all_on_rings $conns) ;;	# they may have sent most before
	# nobody reads yet: rings and windows are full, senders blocked
	full)	more=(-n 8M --read-when "$go") ;;
	esac
	# while nobody reads only the first, small rings are filled
	least=500000
	[ "$1" != full ] || least=$((conns * 30000))
	remember
	begin_streams -C $conns -t 400 "${more[@]}"
	wait_for 40 "${there[@]}"
}

whole() {	# NAME
	in_all touch "$go"
	whole_streams "$1"
	ok "$1: no socket remains" wait_for 20 no_sockets
}

# On any carrier, since "remember"; more than the retained data.
moves() {
	local tcp ring
	read -r tcp ring <<<"$(grown 0 tcp-rx-bytes ring-rx-bytes)"
	[ $((tcp + ring)) -gt 4000000 ]
}

lose() {	# NAME busy|idle|full CMD...: the loss
	local name="$1, $2" what=$2
	shift 2
	ok "$name: a link is up" want_link
	start "$what"
	ok "$name: streams use rings" test $? = 0 || show
	remember
	ok "$name: the link is lost" "$@"
	goes_on "$name"
	[ "$what" != busy ] || ok "$name: bytes move" wait_for 40 moves
}

show() {
	local vm
	for vm in 0 1; do
		on $vm rsctl -o links
		on $vm rsctl -o sockets
		on $vm rsctl -o stats
	done | diag
}

goes_on() {	# NAME
	ok "$1: all streams continue over TCP" wait_for 30 resumed || show
}
