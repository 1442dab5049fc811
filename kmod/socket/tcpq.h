/* SPDX-License-Identifier: GPL-2.0-only */
/* TCP's receive queue, seen without taking anything from it. */
#ifndef RSTREAM_TCPQ_H
#define RSTREAM_TCPQ_H

#include <net/tcp.h>

/* Does TCP have unread bytes?  Not tcp_inq(), which rstream_hear_all() misleads. */
static inline bool rstream_tcpq_unread(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 n = tp->rcv_nxt - tp->copied_seq;

	return n > (sk->sk_shutdown & RCV_SHUTDOWN ? 1 : 0);
}

unsigned int rstream_tcpq_peek(const struct sock *sk, u32 seq, u8 *to, unsigned int n);

#endif
