# shellcheck shell=bash disable=SC2034,SC2154	# shared with "suite"
# SPDX-License-Identifier: GPL-2.0-only
# stress-ng: those of its stressors that use TCP sockets, checking what they do.
needs="stress-ng"
limit=500

stress() {	# OPTION...
	timeout 90 stress-ng --verify --metrics-brief --no-rand-seed -t 3 "$@"
}

run() {
	local domain options
	for domain in ipv4 ipv6; do
		for options in send sendmsg sendmmsg random; do
			try "sock,$domain,$options" stress --sock 2 --sock-domain $domain --sock-opts $options
		done
		try "epoll,$domain" stress --epoll 1 --epoll-domain $domain
	done
	try "sock,no delay" stress --sock 1 --sock-nodelay
	try "sock,stream" stress --sock 1 --sock-type stream --sock-protocol tcp
	try "sock,zero copy" stress --sock 1 --sock-zerocopy
	try sock-many stress --sockmany 1
	try sock-abuse stress --sockabuse 1
	try sock-diag stress --sockdiag 1
	try splice stress --splice 1
	try sendfile stress --sendfile 1
	try poll stress --poll 1
}
