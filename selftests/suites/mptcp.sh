# shellcheck shell=bash disable=SC2034,SC2154	# shared with "suite"
# SPDX-License-Identifier: GPL-2.0-only
# The kernel's mptcp_connect, in its mode for TCP: by poll, mmap and sendfile.
needs="linux-source-6.12 gcc libc6-dev"
limit=500
quick=yes

build() {
	local dir=tools/testing/selftests/net/mptcp
	mkdir -p "$BUILT"
	tar -C "$BUILT" --strip-components=6 --wildcards -xf /usr/src/linux-source-6.12.tar.xz \
		"*/$dir/mptcp_connect.c" &&
		gcc -O2 -w -o "$BUILT/mptcp_connect" "$BUILT/mptcp_connect.c"
}

transfer() {	# ADDRESS CLIENT-FILE SERVER-FILE OPTION...
	local address=$1 client=$2 server=$3 listener status=0
	shift 3
	timeout 60 "$BUILT/mptcp_connect" -t 30 -l -p 10001 -s TCP "$@" "$address" <"$server" >from-client &
	listener=$!
	wait_for 20 listens 0 10001 &&
		timeout 60 "$BUILT/mptcp_connect" -t 30 -p 10001 -s TCP "$@" "$address" <"$client" >from-server ||
		status=1
	wait $listener || status=1
	cmp "$client" from-client && cmp "$server" from-server && return $status
}

run() {
	local mode
	head -c 1000000 /dev/urandom >large
	head -c 8000 /dev/urandom >small
	head -c 1 /dev/urandom >byte
	for mode in poll mmap sendfile; do
		try "$mode,large" transfer 127.0.0.1 large large -m $mode
		try "$mode,small to large" transfer 127.0.0.1 small large -m $mode
		try "$mode,byte" transfer 127.0.0.1 byte large -m $mode
		try "$mode,IPv6" transfer ::1 large small -m $mode
	done
	try "small buffers" transfer 127.0.0.1 large large -S 8192 -R 8192
	try "shut down early" transfer 127.0.0.1 small small -r 3000 -j
}
