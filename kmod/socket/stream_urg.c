// SPDX-License-Identifier: GPL-2.0-only
/*
 * Urgent data on a connection with records.  The urgent byte travels with the others; the
 * record URG precedes it and says which one it is.  On tcp, TCP keeps them in order; on a
 * ring, bytes wait until TCP has delivered URG.
 *
 * Programs see the same as with TCP: SIGURG when the mark is announced, POLLPRI when the byte
 * has arrived; reads stop at the mark and then skip the byte, unless SO_OOBINLINE is set.
 * Socket held.
 */
#include <net/tcp.h>

#include "stream.h"

/* ---- sending ---- */

/* The last byte in the queue is urgent. */
void rstream_urg_send(struct rstream *rs)
{
	rs->urg.sent = rs->tx.written;
	set_bit(RSTREAM_WANT_URG, &rs->want);
}

/* May bytes go to the ring without overtaking URG? */
bool rstream_urg_heard(struct rstream *rs)
{
	if (test_bit(RSTREAM_WANT_URG, &rs->want))
		return false;
	if (tcp_sk(rs->sk)->bytes_acked >= rs->out.urg_end)
		return true;
	rstream_retry(rs, RSTREAM_RETRY_MS);
	return false;
}

/* ---- receiving ---- */

/* The byte at @at is urgent, by a URG record or TCP's mark. */
void rstream_urg_mark(struct rstream *rs, u64 at)
{
	if (at < rs->rx.consumed || (rs->urg.state && at <= rs->urg.at))
		return;
	/* as TCP: if the reader is at an earlier mark, skip that byte */
	if (rstream_rxq_at_mark(rs, rs->rx.consumed) &&
	    !sock_flag(rs->sk, SOCK_URGINLINE) && rstream_plain_recv_pull(rs, 0) &&
	    rstream_rxq_ready(rs))
		rstream_recv_consume(rs, 1);
	WRITE_ONCE(rs->urg.at, at);
	/* no barrier: poll() checks again after the wake-up */
	WRITE_ONCE(rs->urg.state, RSTREAM_URG_NEW);
	rstream_wake(rs);
}

enum rstream_reason rstream_urg_got(struct rstream *rs, u64 offset)
{
	u64 at = offset - 1;

	if (!offset || (rs->rx.fin && offset > rs->rx.fin_at))
		return RSTREAM_R_BAD_OFFSET;
	if (at < rs->rx.consumed || (rs->urg.state && at <= rs->urg.at))
		return RSTREAM_R_NONE;	/* obsolete */
	sk_send_sigurg(rs->sk);
	rstream_urg_mark(rs, at);
	return RSTREAM_R_NONE;
}

/* recv(MSG_OOB). */
int rstream_urg_recv(struct rstream *rs, struct msghdr *msg, size_t len,
		     int flags)
{
	int n = 0;

	if (sock_flag(rs->sk, SOCK_URGINLINE) || rs->urg.state != RSTREAM_URG_NEW)
		return -EINVAL;		/* as in TCP, if there is nothing to read out of band */
	if (rs->sk->sk_state == TCP_CLOSE && !rs->rx.fin)
		return -ENOTCONN;	/* reset */
	rstream_ring_landed(rs);
	if (!rstream_rxq_urg_here(rs) ||
	    !rstream_plain_recv_pull(rs, rs->urg.at - rs->rx.consumed))
		return rstream_rxq_over(rs) ? 0 : -EAGAIN;
	/* it may be read again: after MSG_PEEK, or inline */
	if (!rstream_recv_seen(rs, rs->urg.at - rs->rx.consumed, 1))
		return -ENOMEM;
	msg->msg_flags |= MSG_OOB;
	if (len)
		n = rstream_recv_copy(rs, msg, 1, rs->urg.at - rs->rx.consumed,
				      flags & MSG_TRUNC);
	else
		msg->msg_flags |= MSG_TRUNC;
	if (!(flags & MSG_PEEK))
		WRITE_ONCE(rs->urg.state, RSTREAM_URG_READ);
	return n;
}
