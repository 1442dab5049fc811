// SPDX-License-Identifier: GPL-2.0-only
/*
 * TCP's receive queue, seen without taking anything from it.
 *
 * Socket held.
 */
#include <net/tcp.h>

#include "tcpq.h"

/**
 * rstream_tcpq_peek() - copy bytes of the queue
 * @sk: the TCP socket
 * @seq: sequence number of the first byte; not before what the program has read
 * @to: where to
 * @n: how many, at most
 *
 * It never sleeps.
 *
 * Return: how many were there
 */
unsigned int rstream_tcpq_peek(const struct sock *sk, u32 seq, u8 *to, unsigned int n)
{
	unsigned int done = 0;
	struct sk_buff *skb;

	skb = skb_peek(&sk->sk_receive_queue);
	/* from the nearer end; what is read next is at the head */
	if (skb && seq - TCP_SKB_CB(skb)->seq > tcp_sk(sk)->rcv_nxt - seq)
		skb_queue_reverse_walk(&sk->sk_receive_queue, skb)
			if (!after(TCP_SKB_CB(skb)->seq, seq))
				break;
	if (!skb)
		return 0;
	skb_queue_walk_from(&sk->sk_receive_queue, skb) {
		u32 off = seq + done - TCP_SKB_CB(skb)->seq, len;

		if (off >= skb->len)	/* packets may overlap */
			continue;
		len = min(n - done, skb->len - off);
		if (skb_copy_bits(skb, off, to + done, len))
			break;
		done += len;
		if (done == n)
			break;
	}
	return done;
}

/**
 * rstream_tcpq_copy() - copy bytes of the queue to the program, which will read the same later
 * @sk: the TCP socket
 * @seq: sequence number of the first byte; not before what the program has read
 * @msg: where to; NULL: only count them
 * @len: how many, at most
 * @stamp: is set to when the last of them arrived, or to 0 if that is not known
 *
 * It may sleep.
 *
 * Return: how many were copied, or -EFAULT
 */
int rstream_tcpq_copy(const struct sock *sk, u32 seq, struct msghdr *msg, size_t len,
		      ktime_t *stamp)
{
	size_t done = 0;
	struct sk_buff *skb;

	/* from the head, as reads: where packets overlap, the first one counts */
	skb_queue_walk(&sk->sk_receive_queue, skb) {
		u32 off = seq + done - TCP_SKB_CB(skb)->seq, n;

		if (off >= skb->len)
			continue;
		n = min_t(size_t, len - done, skb->len - off);
		if (msg && skb_copy_datagram_msg(skb, off, msg, n))
			return done ?: -EFAULT;
		*stamp = TCP_SKB_CB(skb)->has_rxtstamp ? skb->tstamp : 0;
		done += n;
		if (done == len)
			break;
	}
	return done;
}
