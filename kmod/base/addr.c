// SPDX-License-Identifier: GPL-2.0-only
/*
 * Addresses of sockets, as reported to user space.
 */
#include <linux/in.h>
#include <net/inet_sock.h>
#include <net/ipv6.h>

#include "addr.h"

void rstream_addr_of(const struct sock *sk, bool remote, struct sockaddr_in6 *to)
{
	const struct inet_sock *inet = inet_sk(sk);
	__be16 port = remote ? inet->inet_dport : inet->inet_sport;

	memset(to, 0, sizeof(*to));
	if (sk->sk_family == AF_INET) {
		struct sockaddr_in *sin = (struct sockaddr_in *)to;

		sin->sin_family = AF_INET;
		sin->sin_port = port;
		sin->sin_addr.s_addr = remote ? inet->inet_daddr :
						inet->inet_saddr;
	} else {
		to->sin6_family = AF_INET6;
		to->sin6_port = port;
		to->sin6_addr = remote ? sk->sk_v6_daddr : sk->sk_v6_rcv_saddr;
	}
	if (remote && !port)
		to->sin6_family = AF_UNSPEC;
}
