/* SPDX-License-Identifier: GPL-2.0-only */
/* TCP's receive queue, seen without taking anything from it. */
#ifndef RSTREAM_TCPQ_H
#define RSTREAM_TCPQ_H

#include <net/tcp.h>

struct msghdr;

/* Does TCP have unread bytes?  Not tcp_inq(), which rstream_hear_all() misleads. */
static inline bool rstream_tcpq_unread(const struct sock *sk)
{
	const struct sk_buff *tail = skb_peek_tail(&sk->sk_receive_queue);
	const struct tcp_sock *tp = tcp_sk(sk);

	/* not sk_shutdown: that is set by RST, too, which has no sequence number of its own */
	return tail && tp->rcv_nxt - tp->copied_seq >
		       !!(TCP_SKB_CB(tail)->tcp_flags & TCPHDR_FIN);
}

int rstream_tcpq_copy(const struct sock *sk, u32 seq, struct msghdr *msg, size_t len,
		      ktime_t *stamp);
unsigned int rstream_tcpq_peek(const struct sock *sk, u32 seq, u8 *to, unsigned int n);

#endif
