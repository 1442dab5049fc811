// SPDX-License-Identifier: GPL-2.0-only
/*
 * Urgent data on a connection with records.  The urgent byte travels with the
 * others; the record URG says which one it is, ahead of it: TCP keeps them in
 * order, and ring bytes wait until TCP has delivered the record.
 *
 * What a program sees of it is TCP's: SIGURG when the mark is announced, POLLPRI
 * when the byte is here, reads stop at the mark and then pass the byte over,
 * unless SO_OOBINLINE.  Socket held, but for the questions of poll().
 */
#include <net/tcp.h>

#include "stream.h"

/* ---- sending ---- */

/* The last byte that was queued is urgent. */
void rstream_urg_send(struct rstream *rs)
{
	rs->urg.sent = rs->tx.written;
	set_bit(RSTREAM_WANT_URG, &rs->want);
}

/* May bytes go to the ring, or would they overtake URG? */
bool rstream_urg_heard(struct rstream *rs)
{
	if (test_bit(RSTREAM_WANT_URG, &rs->want))
		return false;
	if (tcp_sk(rs->sk)->bytes_acked >= rs->urg.sent_end)
		return true;
	rstream_retry(rs, RSTREAM_RETRY_MS);
	return false;
}

/* ---- receiving ---- */

/* As SIOCINQ counts: up to the mark. */
u64 rstream_urg_inq(const struct rstream *rs)
{
	u64 ready = rstream_rx_ready(rs);

	if (!rs->urg.state || sock_flag(rs->sk, SOCK_URGINLINE))
		return ready;
	return min(ready, rs->urg.at - rs->rx.consumed);
}

/* The byte at @at is urgent, whoever has said so. */
void rstream_urg_mark(struct rstream *rs, u64 at)
{
	if (at < rs->rx.consumed || (rs->urg.state && at <= rs->urg.at))
		return;
	/* as TCP: one at which the reader stands makes way */
	if (rstream_urg_at_mark(rs, rs->rx.consumed) &&
	    !sock_flag(rs->sk, SOCK_URGINLINE) && rstream_prelude_pull(rs, 0) &&
	    rstream_rx_ready(rs))
		rstream_rx_consume(rs, 1);
	WRITE_ONCE(rs->urg.at, at);
	/* pairs with nothing: poll() looks again when it is woken */
	WRITE_ONCE(rs->urg.state, RSTREAM_URG_NEW);
	rstream_wake(rs);
}

enum rstream_reason rstream_urg_got(struct rstream *rs, u64 offset)
{
	u64 at = offset - 1;

	if (!offset || (rs->rx.fin && offset > rs->rx.fin_at))
		return RSTREAM_R_BAD_OFFSET;
	if (at < rs->rx.consumed || (rs->urg.state && at <= rs->urg.at))
		return RSTREAM_R_NONE;	/* old news */
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
		return -EINVAL;		/* there is none */
	rstream_ring_landed(rs);
	if (!rstream_urg_here(rs) ||
	    !rstream_prelude_pull(rs, rs->urg.at - rs->rx.consumed))
		return rstream_rx_over(rs) ? 0 : -EAGAIN;
	/* it can be read again: when peeked at, or in line */
	if (!rstream_rx_seen(rs, rs->urg.at - rs->rx.consumed, 1))
		return -ENOMEM;
	msg->msg_flags |= MSG_OOB;
	if (len)
		n = rstream_rx_copy(rs, msg, 1, rs->urg.at - rs->rx.consumed,
				    flags & MSG_TRUNC);
	else
		msg->msg_flags |= MSG_TRUNC;
	if (!(flags & MSG_PEEK))
		WRITE_ONCE(rs->urg.state, RSTREAM_URG_READ);
	return n;
}
