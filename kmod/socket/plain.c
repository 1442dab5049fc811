// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bytes without records: the prelude and spans, and how we send them.
 *
 * The prelude: if the option asks for it, a connection begins as plain TCP, without HELLO
 * and records, so that a short connection costs no more than with TCP.
 *
 * Each direction has its own prelude, of at most RSW_PRELUDE bytes:
 *
 *	plain bytes ... | HELLO | records ...
 *
 * An end sends HELLO after the last of these bytes, or earlier to answer the peer's HELLO.
 * Once it has sent HELLO, it looks for the peer's among the received bytes.  TCP's FIN in
 * the prelude ends the stream.
 *
 * At the end of its prelude, an end that cannot expect an answer to HELLO does not send it:
 * the connection stays plain for good.  Such an end is a server that does not know whether
 * its client has seen the option, or an end that has received the peer's FIN.  If HELLO and
 * FIN cross, only one direction has records; TCP's own window limits it, and it has no ring.
 *
 * Spans: records exist for the sake of rings.  While no ring is available, each direction
 * does without them again: a PLAIN record states how many plain bytes follow it:
 *
 *	records ... PLAIN | plain bytes ... PLAIN | plain bytes ... HELLO | records ...
 *
 * Both directions do this together, because no control record can be sent within a span.
 * Both return to records, with HELLO, when one of them has reached the end of a span and a
 * ring may be available again.
 *
 * plain_recv.c receives them.
 *
 * Socket held; never sleeps, except while it copies from and to programs.
 */
#include <net/tcp.h>

#include "base/stats.h"
#include "stream.h"

/* How long not to return to records again only because there is a link. */
#define RETURN_PAUSE	(HZ / 10)
/* How often the length of a span doubles. */
#define SPAN_GROWTH	4

void rstream_plain_begin(struct rstream *rs)
{
	const struct tcp_sock *tp = tcp_sk(rs->sk);

	rstream_phase_begin(&rs->plain.phase, RSW_PRELUDE);
	rs->plain.tx_start = tp->write_seq;
	rs->plain.rx_start = tp->copied_seq;
	/* the client's HELLO may still show that it has seen our option */
	if (rs->server && rs->offer.confirmed != RSTREAM_CONFIRMED)
		rstream_timer(rs, RSTREAM_UNCONFIRMED_MS);
}

/* Is the connection plain TCP at present, with nothing of ours under way in either direction? */
bool rstream_plain_only(const struct rstream *rs)
{
	/* a peer with our GRANT will answer it in records */
	return rstream_tx_plain(rs) && rstream_rx_plain(rs) && list_empty(&rs->txq.frags) &&
	       !rs->out.rec_left && !rs->out.ctl_len && rs->rx.state == RSTREAM_ON_TCP;
}

/* ---- what we send ---- */

/* Is there nothing for rstream_flush() to do, and nothing left over from the last one? */
bool rstream_plain_tx_idle(const struct rstream *rs)
{
	return rstream_tx_plain(rs) && rs->tx.written == rs->tx.sent && !rs->want &&
	       !rs->out.ctl_len && !rs->out.rec_left && !rs->out.waits &&
	       !rs->txring && !rs->zc.tcp;
}

/* How many bytes may still be sent without a record. */
static u64 tx_room(const struct rstream *rs)
{
	return rs->plain.phase.tx == RSTREAM_PLAIN ? RSTREAM_ENDLESS :
						     rs->plain.phase.tx_end - rs->tx.sent;
}

/* Send HELLO next, and expect the peer's. */
void rstream_plain_want_hello(struct rstream *rs)
{
	if (rstream_registered(rs)) {		/* after a span: it repeats the first HELLO */
		set_bit(RSTREAM_WANT_HELLO, &rs->want);
		return;
	}
	rstream_register(rs);
	set_bit(RSTREAM_WANT_HELLO, &rs->want);
	rs->hello.late = 0;
	if (!rs->hello.in)
		rstream_timer(rs, rs->rn->set.hello_timeout_ms);
}

/* The peer's FIN means that it cannot answer our HELLO: only TCP's window limits our records. */
bool rstream_plain_one_way(struct rstream *rs)
{
	if (!rstream_phase_rx_fin(&rs->plain.phase))
		return false;
	rs->tx.limit = RSTREAM_ENDLESS;
	return true;
}

static void span_leave(struct rstream *rs)
{
	rs->plain.ring = false;
	rs->plain.left_at = tcp_jiffies32;
	clear_bit(RSTREAM_WANT_PLAIN, &rs->want);
	rstream_span_leave(&rs->plain.phase);
	rstream_plain_want_hello(rs);
	/* we return to answer a GRANT, but the peer has sent FIN since: its HELLO won't come */
	if (rs->rx.fin && rs->plain.phase.rx == RSTREAM_SPAN)
		rstream_plain_one_way(rs);
}

/*
 * Can we expect to grant a ring, or to be granted one?  Don't return to records while the program
 * leaves much unread: the peer's HELLO follows that data, and we may send little until it arrives.
 * Therefore, don't return often only because there is a link, either: it may have no memory for
 * rings.
 */
static bool ring_likely(struct rstream *rs, bool paused)
{
	struct rstream_link *link;

	if (paused || rs->plain_rx.in_tcp + rs->rxq.bytes > rstream_rxq_window_most(rs))
		return false;
	if (rs->plain.ring || rs->rx.fin || !rs->hello.peer)
		return rs->plain.ring && !rs->rx.fin;
	if (tcp_jiffies32 - rs->plain.left_at < RETURN_PAUSE)
		return false;
	link = rstream_peer_link(rs->hello.peer, 0);
	if (!link)
		return false;
	rstream_link_put(link);
	return true;
}

/* Have we reached the end of our prelude or span? */
bool rstream_plain_tx_over(const struct rstream *rs)
{
	return rs->tx.sent == rs->plain.phase.tx_end;
}

/*
 * More is to be sent at the end of our prelude or span: decide whether PLAIN, HELLO or nothing
 * precedes it.  @paused: we take nothing from TCP.
 */
void rstream_plain_tx_next(struct rstream *rs, bool paused)
{
	if (rs->plain.phase.tx == RSTREAM_SPAN) {
		if (ring_likely(rs, paused))
			span_leave(rs);
		else
			set_bit(RSTREAM_WANT_PLAIN, &rs->want);
	} else if (rstream_phase_full(&rs->plain.phase, rs->rx.fin,
				      !rs->server || rs->offer.confirmed == RSTREAM_CONFIRMED,
				      rs->offer.confirmed == RSTREAM_UNHEARD)) {
		rstream_plain_want_hello(rs);
	}
}

/* End our stream with TCP's FIN, if FIN is wanted and all data has been sent. */
void rstream_plain_send_fin(struct rstream *rs)
{
	/* the peer may use the ring that we have granted; if it is lost, we have to send RESUME */
	if (rs->plain.phase.tx == RSTREAM_SPAN && rs->rx.state != RSTREAM_ON_TCP)
		return;
	/* records may follow a span, but no ACK for what arrives now: its window is TCP's */
	rs->want &= rs->plain.phase.tx == RSTREAM_SPAN ? ~BIT(RSTREAM_WANT_ACK) :
						       BIT(RSTREAM_WANT_FIN);
	/* TCP may not have taken all of PLAIN yet */
	if (!test_bit(RSTREAM_WANT_FIN, &rs->want) || rs->tx.written != rs->tx.sent ||
	    rs->out.ctl_len)
		return;
	rs->want = 0;
	rs->tx.fin = true;
	if (rstream_phase_tx_fin(&rs->plain.phase))
		rs->rx.limit = RSTREAM_ENDLESS;
	rstream_shutdown_tcp(rs);
}

/*
 * Give @n bytes to TCP now, or as many as it takes.  Its send may process the backlog, which
 * may contain the peer's HELLO: out.flush and tx.sent make ours follow these bytes.
 */
static __always_inline ssize_t give_tcp(struct rstream *rs, struct msghdr *msg, size_t n)
{
	ssize_t sent;
	size_t back;

	WRITE_ONCE(rs->out.flush, RSTREAM_FLUSH_BUSY);
	rs->tx.written += n;
	rs->tx.sent += n;
	sent = tcp_sendmsg_locked(rs->sk, msg, n);
	back = n - max_t(ssize_t, sent, 0);
	rs->tx.written -= back;
	rs->tx.sent -= back;
	WRITE_ONCE(rs->out.flush, RSTREAM_FLUSH_IDLE);
	if (sent > 0) {
		rs->txq.at = jiffies;
		rstream_mib_add(rs->rn, RSTREAM_MIB_SENT_COPY_BYTES, sent);
		rstream_count_tcp_tx(rs, sent);
	}
	return sent;
}

/* Likewise, with any flags and control messages. */
static ssize_t send_plain(struct rstream *rs, struct msghdr *msg, size_t n)
{
	unsigned int flags = msg->msg_flags, kept = MSG_MORE;
	size_t left = msg_data_left(msg), control = msg->msg_controllen;
	typeof(rs->sk->sk_tsflags) tsflags = rs->sk->sk_tsflags;
	ssize_t sent;

	if (n == left)
		kept |= MSG_OOB;	/* TCP's mark is at the last byte */
	msg->msg_flags = (flags & kept) | MSG_DONTWAIT | MSG_NOSIGNAL;
	if (n < left)
		msg->msg_flags |= MSG_MORE;
	/* as with records: SOF_TIMESTAMPING_OPT_ID would count their bytes, too */
	if (rs->plain.phase.tx == RSTREAM_SPAN) {
		WRITE_ONCE(rs->sk->sk_tsflags, tsflags & ~SOF_TIMESTAMPING_TX_RECORD_MASK);
		msg->msg_controllen = 0;
	}
	iov_iter_truncate(&msg->msg_iter, n);
	sent = give_tcp(rs, msg, n);
	WRITE_ONCE(rs->sk->sk_tsflags, tsflags);
	msg->msg_controllen = control;
	iov_iter_reexpand(&msg->msg_iter, left - max_t(ssize_t, sent, 0));
	msg->msg_flags = flags;
	return sent;
}

/*
 * Fast path for the common send: no special flags, nothing queued before it, and room for all
 * of it.  Return: bytes sent; the rest, if any, has to go through rstream_plain_send()
 */
size_t rstream_plain_send_fast(struct rstream *rs, struct msghdr *msg)
{
	size_t n = msg_data_left(msg);
	unsigned int flags = msg->msg_flags;
	ssize_t sent;

	if (!n || !rstream_plain_tx_idle(rs) || rs->txq.corked_at || n > tx_room(rs) ||
	    rs->tx.sent == rs->plain.phase.tx_end || msg->msg_controllen ||
	    flags & (MSG_OOB | MSG_ZEROCOPY | MSG_SPLICE_PAGES) ||
	    (rs->plain.phase.tx == RSTREAM_SPAN && rs->sk->sk_tsflags))
		return 0;
	msg->msg_flags = (flags & MSG_MORE) | MSG_DONTWAIT | MSG_NOSIGNAL;
	sent = give_tcp(rs, msg, n);
	msg->msg_flags = flags;
	return max_t(ssize_t, sent, 0);
}

/*
 * Send straight to TCP.  Return: bytes sent, 0 if they have to be queued, -EAGAIN if there is
 * no room, or another error of TCP.
 */
ssize_t rstream_plain_send(struct rstream *rs, struct msghdr *msg)
{
	bool urgent = msg->msg_flags & MSG_OOB;
	size_t n;

	n = min_t(u64, msg_data_left(msg), tx_room(rs));
	if (!n || !list_empty(&rs->txq.frags) || rs->out.rec_left || rs->out.ctl_len ||
	    rs->txq.corked_at)
		return urgent ? -EAGAIN : 0;
	return send_plain(rs, msg, n) ?: -EAGAIN;
}

/* ---- spans ---- */

/* Is a ring out of reach, as far as we know? */
static bool ring_unlikely(const struct rstream *rs)
{
	switch (READ_ONCE(rs->reason)) {
	case RSTREAM_R_NONE:
	case RSTREAM_R_WAIT_BYTES:
	case RSTREAM_R_WAIT_LINK:
	case RSTREAM_R_RING_IDLE:
		return false;
	default:
		return !rs->plain.ring;
	}
}

/* There are bytes to send in records: should they go in a span instead? */
bool rstream_plain_span_due(const struct rstream *rs)
{
	return rs->hello.plain && !rs->txring && !rs->rxring && !rs->want &&
	       rs->tx.state == RSTREAM_ON_TCP && rs->rx.state == RSTREAM_ON_TCP &&
	       !rs->tx.fin && !rs->rx.fin && rs->urg.sent <= rs->tx.sent &&
	       rstream_span_may_begin(&rs->plain.phase) && ring_unlikely(rs);
}

/* PLAIN goes to TCP next, after what is in rstream.ctl. */
static void put_plain(struct rstream *rs, struct rstream_record *rec)
{
	*rec = (struct rstream_record) {
		.type = RSW_PLAIN,
		.span = RSTREAM_SPAN_FIRST << rs->plain.grown,
	};
	if (rs->plain.phase.tx == RSTREAM_RECORDS) {
		rs->plain.tx_from = rstream_tcp_acked_at(rs) + rs->out.ctl_len + RSTREAM_PLAIN_LEN;
		rstream_mib_inc(rs->rn, RSTREAM_MIB_SPANS);
	}
	if (rs->plain.grown < SPAN_GROWTH)
		rs->plain.grown++;
	if (rstream_span_tx(&rs->plain.phase, rs->tx.sent, rec->span))
		span_leave(rs);
}

/*
 * Control records in a span, and PLAIN, which begins one.  A span can only be followed by
 * PLAIN or HELLO.  To answer a GRANT we return to records at once: the peer then looks for
 * our HELLO.  Return: true if a record is due, in @rec
 */
bool rstream_plain_span_control(struct rstream *rs, struct rstream_record *rec)
{
	if (test_and_clear_bit(RSTREAM_WANT_LINK, &rs->want)) {
		WRITE_ONCE(rs->granted.link_asked, 0);
		rs->plain.ring = true;	/* back in records we can ask again */
	}
	if (rs->plain.phase.tx == RSTREAM_SPAN && test_bit(RSTREAM_WANT_SWITCH, &rs->want)) {
		span_leave(rs);
		return false;
	}
	if (!test_and_clear_bit(RSTREAM_WANT_PLAIN, &rs->want))
		return false;
	put_plain(rs, rec);
	return true;
}

/* A ring is in use.  The next time without one may be short, so begin with short spans. */
void rstream_plain_span_reset(struct rstream *rs)
{
	rs->plain.grown = 0;
}

/* The next queued bytes go without a header.  Return: how many. */
u32 rstream_plain_data(struct rstream *rs)
{
	u64 queued = rs->tx.written - rs->tx.sent;
	u32 n;

	if (rs->txq.corked_at)
		return 0;
	n = min3(queued, tx_room(rs), (u64)RSW_DATA_MAX);
	if (!n)
		return 0;
	rs->tx.sent += n;
	rs->txq.at = jiffies;
	rstream_count_tcp_tx(rs, n);
	return n;
}
