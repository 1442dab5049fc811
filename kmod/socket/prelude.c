// SPDX-License-Identifier: GPL-2.0-only
/*
 * Bytes without records.
 *
 * The prelude: a connection whose option says so begins as plain TCP, without
 * HELLO and records, so that a short one costs what TCP costs.
 *
 * Each direction has its own, of RSW_PRELUDE bytes at most:
 *
 *	plain bytes ... | HELLO | records ...
 *
 * HELLO comes behind the last of these bytes, or earlier in answer to the peer's:
 * from then on that it has said HELLO an end looks for the other's among the bytes
 * that come.  TCP's FIN in the prelude is the stream's.
 *
 * Who reaches the end of its prelude without reason to say HELLO goes on as it
 * began: the connection is plain for good.  That is a server that does not know
 * whether its client has seen the option, and whoever has had the peer's FIN, for
 * the peer cannot answer.  If HELLO and FIN cross, records go one way, with TCP's
 * own window, and no ring.
 *
 * Spans: records are for rings.  Where none is to be had each direction leaves them, with
 * the record PLAIN, for so many bytes as that says:
 *
 *	records ... PLAIN | plain bytes ... PLAIN | plain bytes ... HELLO | records ...
 *
 * Both do, for no control record can be said in a span; and both come back, with HELLO,
 * when one of them has reached the end of a span and there may be a ring again.
 *
 * What is here is received without being touched: as long as no HELLO is due it
 * stays in TCP's queue, counted by rstream_prelude.lazy, until the program reads it.
 *
 * Socket held; never sleeps, but for the copies from and to programs.
 */
#include <net/tcp.h>

#include "base/stats.h"
#include "option_hook.h"
#include "stream.h"

/* No limit that a stream would reach. */
#define ENDLESS	BIT_ULL(62)

/*
 * The first span, bytes, and how often the next ones double: a stream that moves much comes
 * by the end of one often enough to see that there is a ring, and pays for few ends.
 */
#define SPAN_FIRST	SZ_64K
#define SPAN_GROWTH	4

void rstream_prelude_begin(struct rstream *rs)
{
	const struct tcp_sock *tp = tcp_sk(rs->sk);

	rstream_plain_begin(&rs->plain.dir, RSW_PRELUDE);
	rs->plain.tx_start = tp->write_seq;
	rs->plain.rx_start = tp->copied_seq;
	/* whether the client has seen our option we may hear later, by its HELLO */
	if (rs->server && !rs->offer.confirmed)
		rstream_timer(rs, RSTREAM_UNCONFIRMED_MS);
}

/* Nothing of the connection but plain TCP so far? */
bool rstream_prelude_only(const struct rstream *rs)
{
	/* a GRANT will be answered by records */
	return rstream_tx_plain(rs) && rstream_rx_plain(rs) && list_empty(&rs->txq.frags) &&
	       !rs->out.rec_left && !rs->out.ctl_len && rs->rx.state == RSTREAM_ON_TCP;
}

/* ---- what we send ---- */

/* Is there nothing that rstream_flush() could do, nor has it left anything undone? */
bool rstream_prelude_idle(const struct rstream *rs)
{
	return rstream_tx_plain(rs) && rs->tx.written == rs->tx.sent && !rs->want &&
	       !rs->out.ctl_len && !rs->out.rec_left && !rs->out.blocked &&
	       !rs->out.autocorked && !rs->txring && !rs->zc.on_tcp;
}

/* Bytes that may go without a record. */
u64 rstream_prelude_room(const struct rstream *rs)
{
	return rs->plain.dir.tx == RSTREAM_PLAIN ? ENDLESS : rs->plain.dir.tx_end - rs->tx.sent;
}

/* HELLO is next; look for that of the peer. */
void rstream_hello_say(struct rstream *rs)
{
	if (rs->registered) {		/* behind a span: said before */
		set_bit(RSTREAM_WANT_HELLO, &rs->want);
		return;
	}
	rstream_register(rs);
	set_bit(RSTREAM_WANT_HELLO, &rs->want);
	rs->hello.late = 0;
	if (!rs->hello.in)
		rstream_timer(rs, rs->rn->set.hello_timeout_ms);
}

/* The peer's FIN has come: our HELLO is not answered any more, our records go as TCP lets them. */
static bool one_way(struct rstream *rs)
{
	if (!rstream_plain_over(&rs->plain.dir))
		return false;
	rs->tx.limit = ENDLESS;
	return true;
}

static void span_leave(struct rstream *rs)
{
	rs->plain.ring = false;
	clear_bit(RSTREAM_WANT_PLAIN, &rs->want);
	rstream_span_leave(&rs->plain.dir);
	rstream_hello_say(rs);
	/* a GRANT is to be answered, and the FIN has come that was behind it */
	if (rs->rx.fin && rs->plain.dir.rx == RSTREAM_SPAN)
		one_way(rs);
}

/*
 * May there be a ring by now: one that we grant, or the peer?  Not while the program leaves much
 * unread: the peer's HELLO is behind that, and until it comes we may send little.
 */
static bool hopes(struct rstream *rs)
{
	struct rstream_link *link;

	if (rstream_rx_held(rs) || rs->plain.lazy + rs->rxq.bytes > rstream_window_most(rs))
		return false;
	if (rs->plain.ring || rs->rx.fin || !rs->hello.peer)
		return rs->plain.ring && !rs->rx.fin;
	link = rstream_peer_link(rs->hello.peer, 0);
	if (!link)
		return false;
	rstream_link_put(link);
	return true;
}

/* There are bytes to send: do they still go without a record? */
void rstream_prelude_look(struct rstream *rs)
{
	if (rs->tx.sent != rs->plain.dir.tx_end)
		return;
	if (rs->plain.dir.tx == RSTREAM_SPAN) {
		if (hopes(rs))
			span_leave(rs);
		else
			set_bit(RSTREAM_WANT_PLAIN, &rs->want);
	} else if (rstream_plain_full(&rs->plain.dir, rs->rx.fin,
				      !rs->server || rs->offer.confirmed, rs->hello.may_speak)) {
		rstream_hello_say(rs);
	}
}

/* A server has waited for what would confirm its option, or HELLO is late. */
void rstream_prelude_late(struct rstream *rs)
{
	if (rs->server && !rs->offer.confirmed) {
		WRITE_ONCE(rs->hello.may_speak, true);
		rs->out.due = true;
	}
	if (!rs->in.part_len || !rstream_tx_plain(rs) || rs->rx.arrived != RSW_PRELUDE)
		return;
	/* what looks like a HELLO at the end of the prelude is one: the rest is on its way */
	if (rs->in.part_len < RSW_MAGIC_LEN || !rstream_hello_wait_on(rs))
		rstream_prelude_no_hello(rs, true);
}

/* TCP's FIN is the stream's. */
void rstream_prelude_fin(struct rstream *rs)
{
	struct sock *sk = rs->sk;

	/* the peer may use the ring that we have granted, and its loss is told by a record */
	if (rs->plain.dir.tx == RSTREAM_SPAN && rs->rx.state != RSTREAM_ON_TCP)
		return;
	/* behind a span comes what can't be said in it; but what comes now is bounded by TCP */
	rs->want &= rs->plain.dir.tx == RSTREAM_SPAN ? ~BIT(RSTREAM_WANT_ACK) :
						       BIT(RSTREAM_WANT_FIN);
	/* PLAIN may still be on its way to TCP */
	if (!test_bit(RSTREAM_WANT_FIN, &rs->want) || rs->tx.written != rs->tx.sent ||
	    rs->out.ctl_len)
		return;
	rs->want = 0;
	rs->tx.fin = true;
	if (rstream_plain_fin(&rs->plain.dir))
		rs->rx.limit = ENDLESS;
	WRITE_ONCE(sk->sk_shutdown, sk->sk_shutdown | SEND_SHUTDOWN);
	sk->sk_prot->shutdown(sk, SEND_SHUTDOWN);
}

static void count_sent(struct rstream *rs, size_t n)
{
	rs->txq.at = jiffies;
	rs->stats.tx.tcp_bytes += n;
	rs->stats.tx.tcp_msgs++;
	rstream_mib_add(rs->rn, RSTREAM_MIB_TCP_TX_BYTES, n);
	rstream_mib_inc(rs->rn, RSTREAM_MIB_TCP_TX_MSGS);
}

/*
 * What TCP takes of it, straight away.  It may work off what has come meanwhile, and
 * the peer's HELLO among that: ours follows these bytes.
 */
static ssize_t send_plain(struct rstream *rs, struct msghdr *msg, size_t n)
{
	unsigned int flags = msg->msg_flags, kept = MSG_MORE;
	size_t left = msg_data_left(msg), control = msg->msg_controllen, back;
	typeof(rs->sk->sk_tsflags) tsflags = rs->sk->sk_tsflags;
	ssize_t sent;

	if (n == left)
		kept |= MSG_OOB;	/* TCP's mark is at the last byte */
	msg->msg_flags = (flags & kept) | MSG_DONTWAIT | MSG_NOSIGNAL;
	if (n < left)
		msg->msg_flags |= MSG_MORE;
	/* as with records, for which SOF_TIMESTAMPING_OPT_ID would count, too */
	if (rs->plain.dir.tx == RSTREAM_SPAN) {
		WRITE_ONCE(rs->sk->sk_tsflags, tsflags & ~SOF_TIMESTAMPING_TX_RECORD_MASK);
		msg->msg_controllen = 0;
	}
	iov_iter_truncate(&msg->msg_iter, n);
	rs->out.flushing = true;
	rs->tx.written += n;
	rs->tx.sent += n;
	sent = tcp_sendmsg_locked(rs->sk, msg, n);
	back = n - max_t(ssize_t, sent, 0);
	rs->tx.written -= back;
	rs->tx.sent -= back;
	rs->out.flushing = false;
	WRITE_ONCE(rs->sk->sk_tsflags, tsflags);
	msg->msg_controllen = control;
	iov_iter_reexpand(&msg->msg_iter, left - n + back);
	msg->msg_flags = flags;
	return sent;
}

/*
 * What most sends are: all of it goes to TCP, with no other wish and nothing before it.
 * Return: bytes; what is left, or all if it is not so, goes by rstream_prelude_send()
 */
size_t rstream_prelude_send_easy(struct rstream *rs, struct msghdr *msg)
{
	size_t n = msg_data_left(msg);
	unsigned int flags = msg->msg_flags;
	ssize_t sent;

	if (!n || !rstream_prelude_idle(rs) || rs->txq.corked || n > rstream_prelude_room(rs) ||
	    rs->tx.sent == rs->plain.dir.tx_end || msg->msg_controllen ||
	    flags & (MSG_OOB | MSG_ZEROCOPY | MSG_SPLICE_PAGES) ||
	    (rs->plain.dir.tx == RSTREAM_SPAN && rs->sk->sk_tsflags))
		return 0;
	msg->msg_flags = (flags & MSG_MORE) | MSG_DONTWAIT | MSG_NOSIGNAL;
	rs->out.flushing = true;
	rs->tx.written += n;
	rs->tx.sent += n;
	sent = tcp_sendmsg_locked(rs->sk, msg, n);
	rs->out.flushing = false;
	msg->msg_flags = flags;
	sent = max_t(ssize_t, sent, 0);
	rs->tx.written -= n - sent;
	rs->tx.sent -= n - sent;
	if (sent) {
		rstream_mib_add(rs->rn, RSTREAM_MIB_SENT_COPY_BYTES, sent);
		count_sent(rs, sent);
	}
	return sent;
}

/*
 * Straight to TCP.  Return: bytes, 0 if they have to be queued, -EAGAIN without room,
 * or why not.
 */
ssize_t rstream_prelude_send(struct rstream *rs, struct msghdr *msg)
{
	bool urgent = msg->msg_flags & MSG_OOB;
	ssize_t sent;
	size_t n;

	n = min_t(u64, msg_data_left(msg), rstream_prelude_room(rs));
	if (!n || !list_empty(&rs->txq.frags) || rs->out.rec_left || rs->out.ctl_len ||
	    rs->txq.corked)
		return urgent ? -EAGAIN : 0;
	sent = send_plain(rs, msg, n);
	if (sent > 0) {
		rstream_mib_add(rs->rn, RSTREAM_MIB_SENT_COPY_BYTES, sent);
		count_sent(rs, sent);
	}
	return sent ?: -EAGAIN;
}

/* ---- spans ---- */

/* Is there no hope of a ring, for what we know at present? */
static bool ringless(const struct rstream *rs)
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

/* There are bytes to send in records: had they better go without? */
bool rstream_span_due(const struct rstream *rs)
{
	return rs->hello.plain && !rs->txring && !rs->rxring && !rs->want &&
	       rs->tx.state == RSTREAM_ON_TCP && rs->rx.state == RSTREAM_ON_TCP &&
	       !rs->tx.fin && !rs->rx.fin && rs->urg.sent <= rs->tx.sent &&
	       rstream_span_may_begin(&rs->plain.dir) && ringless(rs);
}

/* PLAIN goes to TCP next, behind what is in rstream.ctl. */
static void put_plain(struct rstream *rs, struct rstream_record *rec)
{
	*rec = (struct rstream_record) {
		.type = RSW_PLAIN,
		.span = SPAN_FIRST << rs->plain.grown,
	};
	if (rs->plain.dir.tx == RSTREAM_RECORDS) {
		rs->plain.tx_from = rstream_tcp_acked_at(rs) + rs->out.ctl_len +
				    sizeof(struct rsw_header) + sizeof(struct rsw_plain);
		rstream_mib_inc(rs->rn, RSTREAM_MIB_SPANS);
	}
	if (rs->plain.grown < SPAN_GROWTH)
		rs->plain.grown++;
	if (rstream_span_say(&rs->plain.dir, rs->tx.sent, rec->span))
		span_leave(rs);
}

/*
 * What is to be said between records and spans.  In a span it is PLAIN only; a grant is
 * answered in records, and the peer looks for our HELLO then.  Return: it is in @rec
 */
bool rstream_span_control(struct rstream *rs, struct rstream_record *rec)
{
	if (test_and_clear_bit(RSTREAM_WANT_LINK, &rs->want)) {
		rs->granted.link_asked = false;
		rs->plain.ring = true;	/* or at least say so */
	}
	if (rs->plain.dir.tx == RSTREAM_SPAN && test_bit(RSTREAM_WANT_SWITCH, &rs->want)) {
		span_leave(rs);
		return false;
	}
	if (!test_and_clear_bit(RSTREAM_WANT_PLAIN, &rs->want))
		return false;
	put_plain(rs, rec);
	return true;
}

/* A ring is used: the next time that there is none may be short. */
void rstream_span_useful(struct rstream *rs)
{
	rs->plain.grown = 0;
}

/* PLAIN has come; @seq: TCP sequence number of what follows it. */
enum rstream_reason rstream_span_heard(struct rstream *rs, u64 len, u32 seq)
{
	enum rstream_reason reason;
	bool answer;

	if (!rs->hello.plain || rs->rx.fin || rs->rx.state > RSTREAM_GRANTED)
		return RSTREAM_R_BAD_RECORD;
	reason = rstream_span_got(&rs->plain.dir, rs->rx.arrived, len, &answer);
	if (reason)
		return reason;
	/* but what answers ours may have crossed our SWITCH */
	if (answer && rs->tx.state > RSTREAM_GRANTED)
		return RSTREAM_R_BAD_RECORD;
	rs->plain.rx_start = seq - (u32)rs->rx.arrived;
	if (answer && !rs->tx.fin)
		set_bit(RSTREAM_WANT_PLAIN, &rs->want);
	return RSTREAM_R_NONE;
}

/* The next of what is queued goes without a header.  Return: bytes. */
u32 rstream_prelude_data(struct rstream *rs)
{
	u64 queued = rs->tx.written - rs->tx.sent;
	u32 n;

	if (rs->txq.corked)
		return 0;
	n = min3(queued, rstream_prelude_room(rs), (u64)RSW_DATA_MAX);
	if (!n)
		return 0;
	rs->tx.sent += n;
	count_sent(rs, n);
	return n;
}

/* ---- what comes ---- */

/* @n bytes of the program's have come. */
static bool arrived(struct rstream *rs, size_t n)
{
	if (rstream_closing(rs)) {	/* as TCP: data after close is reset */
		rstream_fail(rs, RSTREAM_R_NONE, ECONNRESET);
		return false;
	}
	rs->rx.arrived += n;
	rs->rxq.at = tcp_jiffies32;
	rs->stats.rx.tcp_bytes += n;
	rs->stats.rx.tcp_msgs++;
	rstream_mib_add(rs->rn, RSTREAM_MIB_TCP_RX_BYTES, n);
	rstream_mib_inc(rs->rn, RSTREAM_MIB_TCP_RX_MSGS);
	if (rs->af_ops)
		rstream_option_off(rs);		/* the server has heard of us */
	if (rs->hist)
		rstream_hist_arrived(rs, rs->rx.arrived);
	return true;
}

/* Bytes of the stream up to the end of TCP's queue. */
static u64 stream_here(const struct rstream *rs)
{
	const struct sk_buff *tail = skb_peek_tail(&rs->sk->sk_receive_queue);
	s32 more;

	if (!tail)
		return rs->rx.arrived;
	more = TCP_SKB_CB(tail)->end_seq -
	       !!(TCP_SKB_CB(tail)->tcp_flags & TCPHDR_FIN) -
	       (rs->plain.rx_start + (u32)rs->rx.arrived);
	return rs->rx.arrived + max(more, 0);
}

/* Is PLAIN before that place in TCP's stream?  It is near to what has come; the span is long. */
static bool beyond_span(const struct rstream *rs, u32 seq)
{
	s32 ahead = seq - (rs->plain.rx_start + (u32)rs->rx.arrived);

	return rs->plain.dir.rx == RSTREAM_SPAN && ahead >= 0 &&
	       ahead >= rs->plain.dir.rx_end - rs->rx.arrived;
}

/*
 * TCP's urgent byte.  TCP's queue would not be read beyond it: its mark becomes ours
 * when the byte is here.
 */
static void take_mark(struct rstream *rs)
{
	struct tcp_sock *tp = tcp_sk(rs->sk);
	u64 read = rs->rx.consumed + rs->rxq.bytes + rs->in.part_len;
	s32 ahead = tp->urg_seq - tp->copied_seq;

	if (!tp->urg_data || beyond_span(rs, tp->urg_seq))
		return;
	if (ahead >= 0)
		rstream_urg_mark(rs, read + ahead);
	if (before(tp->urg_seq, tp->rcv_nxt)) {
		WRITE_ONCE(tp->urg_data, 0);
		tcp_fast_path_check(rs->sk);
	}
}

/* TCP's FIN has come, and no HELLO. */
static void peer_ends(struct rstream *rs)
{
	rstream_rx_fin(&rs->rx, rs->rx.arrived);
	/* nothing can be said behind it, nor our GRANT be answered */
	if (rs->rx.state == RSTREAM_GRANTED)
		rstream_switch_back_got(rs, rs->rx.arrived);
	if (!one_way(rs) || rs->hello.in)
		return;
	rs->hello.in = true;
	if (!rstream_closed(rs))
		rstream_timer(rs, 0);
	rstream_mib_inc(rs->rn, RSTREAM_MIB_FRAMED);
}

/* May HELLO come before the peer's prelude or span ends? */
static bool looks_for_hello(const struct rstream *rs)
{
	return rstream_plain_looks(&rs->plain.dir, rs->rx.state == RSTREAM_GRANTED);
}

/* The byte behind the span that we receive, which is here. */
static u8 byte_behind_span(struct rstream *rs)
{
	u32 seq = rs->plain.rx_start + (u32)rs->plain.dir.rx_end;
	struct sk_buff *skb;
	u8 byte;

	if (rs->plain.behind_at == rs->plain.dir.rx_end)
		return rs->plain.behind;
	skb_queue_reverse_walk(&rs->sk->sk_receive_queue, skb) {
		if (after(TCP_SKB_CB(skb)->seq, seq))
			continue;
		if (skb_copy_bits(skb, seq - TCP_SKB_CB(skb)->seq, &byte, sizeof(byte)))
			break;
		rs->plain.behind = byte;
		rs->plain.behind_at = rs->plain.dir.rx_end;
		return byte;
	}
	return RSW_PLAIN;
}

/*
 * What has come up to @here goes on behind the end of a span.  If the program has yet to read
 * what is before, PLAIN can stay there meanwhile: to read it now would empty TCP's queue.  Not
 * HELLO, whose sender waits for ours; and not so much that there may be one behind PLAIN.
 */
static bool may_stay(struct rstream *rs, u64 here)
{
	u64 end = rs->plain.dir.rx_end;

	return rs->plain.dir.rx == RSTREAM_SPAN &&
	       (rs->plain.lazy || rs->rx.arrived < end) && here - end < SPAN_FIRST &&
	       byte_behind_span(rs) == RSW_PLAIN;
}

/* Are there bytes in rstream.part that may be the program's? */
bool rstream_prelude_part(const struct rstream *rs)
{
	return rs->in.part_len && rstream_rx_plain(rs) &&
	       (rs->plain.dir.rx != RSTREAM_SPAN || rs->rx.arrived != rs->plain.dir.rx_end);
}

/* Is what comes next left to TCP? */
bool rstream_prelude_stays(struct rstream *rs)
{
	u64 here;

	if (rs->plain.dir.rx != RSTREAM_SPAN || rs->plain.lazy || rs->in.part_len ||
	    rs->rx.arrived == rs->plain.dir.rx_end || rstream_closed(rs) || looks_for_hello(rs))
		return false;
	here = stream_here(rs);
	return here <= rs->plain.dir.rx_end || may_stay(rs, here);
}

/*
 * Look at what has come and leave it where it is, if no HELLO can be in it.
 * Return: false if it has to be parsed.
 */
bool rstream_prelude_ready(struct rstream *rs)
{
	u64 here = stream_here(rs), end = rs->plain.dir.rx_end, news;
	bool more, fin = rs->rx.fin;

	take_mark(rs);
	if (looks_for_hello(rs) || rstream_closed(rs) || rs->in.part_len || rs->plain.part_back)
		return false;
	more = rs->plain.dir.rx != RSTREAM_PLAIN && here > end;
	if (more && !may_stay(rs, here))
		return false;
	rs->plain.held = more;
	news = (more ? end : here) - rs->rx.arrived;
	if (news && arrived(rs, news))
		WRITE_ONCE(rs->plain.lazy, rs->plain.lazy + news);
	if (!more)
		rstream_prelude_over(rs);
	if (news || rs->rx.fin != fin)
		rstream_wake_readers(rs);
	return true;
}

/*
 * The same where nothing is to be decided, at less cost: both directions are plain, and neither
 * the end of a span nor of the stream has come.  Return: false if it is not so.
 */
bool rstream_prelude_came(struct rstream *rs)
{
	const struct sock *sk = rs->sk;
	u64 here, news;

	if (!rstream_prelude_untouched(rs) || rs->plain.part_back || rstream_closing(rs) ||
	    tcp_sk(sk)->urg_data || rs->rx.fin != !!(sk->sk_shutdown & RCV_SHUTDOWN) ||
	    sk->sk_rcvlowat > 1)
		return false;
	here = stream_here(rs);
	if (rs->plain.dir.rx != RSTREAM_PLAIN && here > rs->plain.dir.rx_end)
		return false;
	news = here - rs->rx.arrived;
	if (!news)
		return true;
	if (rs->rx.fin || !arrived(rs, news))
		return false;
	WRITE_ONCE(rs->plain.lazy, rs->plain.lazy + news);
	WRITE_ONCE(rs->rxq.told, here);		/* as rstream_wake_readers() */
	rstream_wake(rs);
	return true;
}

/* Records have come, and TCP's FIN without one; with ours out TCP is closed then. */
void rstream_prelude_cut(struct rstream *rs)
{
	struct sock *sk = rs->sk;

	/* first seen when TCP says so: the program has not fetched it yet */
	if (sk->sk_state == TCP_CLOSE && sk->sk_err)
		rs->plain.reset = true;
	if (rs->plain.dir.tx != RSTREAM_ENDED || rs->rx.fin || rs->error || rstream_closed(rs) ||
	    sk->sk_state != TCP_CLOSE || rs->plain.reset || rstream_tcp_unread(sk))
		return;
	rs->error = ECONNRESET;
	rs->reason = RSTREAM_R_TRUNCATED;
	rstream_mib_inc(rs->rn, RSTREAM_MIB_RESETS);
	rstream_mib_reason(rs->rn, RSTREAM_R_TRUNCATED);
	WRITE_ONCE(sk->sk_err, ECONNRESET);
	sk_error_report(sk);
}

/* Has the stream ended?  Everything that has come has been seen. */
void rstream_prelude_over(struct rstream *rs)
{
	const struct sock *sk = rs->sk;

	if (!rstream_rx_plain(rs) || rs->rx.fin || !(sk->sk_shutdown & RCV_SHUTDOWN) ||
	    (sk->sk_state == TCP_CLOSE && sk->sk_err))
		return;
	if (rs->in.part_len)
		rstream_prelude_no_hello(rs, true);
	if (!rs->in.part_len)
		peer_ends(rs);
}

/*
 * At most.  A peer that has received our HELLO answers it; the answer may follow its prelude
 * if ours was still on its way when the peer went on without records.
 */
static u64 bytes_before_hello(const struct rstream *rs)
{
	bool on = rs->plain.dir.rx == RSTREAM_PLAIN ||
		  (rs->plain.dir.rx == RSTREAM_PRELUDE && !rstream_tx_plain(rs));

	return on ? ENDLESS : rs->plain.dir.rx_end - rs->rx.arrived;
}

/* To the queue from which all is read that is not read at once. */
static unsigned int keep(struct rstream *rs, struct sk_buff *skb,
			 unsigned int off, unsigned int len)
{
	unsigned int n = min_t(u64, len, rs->plain.lazy);

	if (n) {
		n = rstream_rx_add(rs, skb, off, n);
		WRITE_ONCE(rs->plain.lazy, rs->plain.lazy - n);
		return n;
	}
	len = rstream_rx_add(rs, skb, off, len);
	if (len)
		arrived(rs, len);
	return len;
}

/* Up to the first byte that a HELLO could begin with. */
static unsigned int before_hello(struct sk_buff *skb, unsigned int off,
				 unsigned int len)
{
	unsigned int done = 0, n;
	u8 bytes[64], *at;

	while (done < len) {
		n = min_t(unsigned int, len - done, sizeof(bytes));
		if (skb_copy_bits(skb, off + done, bytes, n))
			break;
		at = memchr(bytes, RSW_MAGIC[0], n);
		if (at)
			return done + (at - bytes);
		done += n;
	}
	return done;
}

/*
 * Keep what can't be HELLO of this piece of TCP's stream.  Return: bytes; 0: no
 * memory, or *@hello: here it may begin, or goes on.
 */
unsigned int rstream_prelude_parse(struct rstream *rs, struct sk_buff *skb,
				   unsigned int off, unsigned int len,
				   bool *hello)
{
	u64 left = bytes_before_hello(rs);

	*hello = false;
	if (rs->plain.lazy)
		return keep(rs, skb, off, len);
	len = rs->in.part_len ? 0 : min_t(u64, len, left);
	if (len && looks_for_hello(rs))
		len = before_hello(skb, off, len);
	if (len)
		return keep(rs, skb, off, len);
	*hello = true;
	return 0;
}

/* The first @n bytes of rstream.part were the program's. */
static bool give_back(struct rstream *rs, unsigned int n)
{
	if (!rstream_rx_add_bytes(rs, rs->part, n))
		return false;
	arrived(rs, n);
	rs->in.part_len -= n;
	memmove(rs->part, rs->part + n, rs->in.part_len);
	return true;
}

/*
 * What rstream.part begins with is no HELLO, or @none of it is.  Without memory it
 * is done again when rstream_parse() comes by.
 */
void rstream_prelude_no_hello(struct rstream *rs, bool none)
{
	u8 role = rs->server ? RSW_ROLE_SYN : RSW_ROLE_SYNACK;
	u64 nonce = rstream_role_nonce(rs, role);
	struct rstream_hello hello;
	unsigned int n, used;

	rs->plain.part_back = false;
	do {
		u64 left = bytes_before_hello(rs);
		u8 *next = memchr(rs->part + 1, RSW_MAGIC[0], rs->in.part_len - 1);

		if (!left && rs->plain.dir.rx == RSTREAM_SPAN) {
			/* PLAIN begins here, or what should be HELLO is none */
			if (none || rs->part[0] == (u8)RSW_MAGIC[0])
				rstream_fail(rs, none ? RSTREAM_R_TRUNCATED :
					     RSTREAM_R_BAD_RECORD, ECONNRESET);
			return;
		}
		if (!left) {	/* nor is ours needed */
			rstream_plain_for_good(&rs->plain.dir);
			rs->reason = RSTREAM_R_NO_HELLO;
			rstream_mib_inc(rs->rn, RSTREAM_MIB_FALLBACKS);
			rstream_mib_reason(rs->rn, rs->reason);
			left = ENDLESS;
		}
		n = rs->in.part_len;
		if (!none && next && rs->plain.dir.rx != RSTREAM_PLAIN)
			n = next - rs->part;
		if (!give_back(rs, min_t(u64, n, left))) {
			rs->plain.part_back = true;
			rstream_retry(rs, RSTREAM_RETRY_MS);
			return;
		}
	} while (rs->in.part_len &&
		 (none || rstream_hello_read(rs->part, rs->in.part_len, role, nonce,
					     &hello, &used) == RSTREAM_HELLO_NOT));
	rstream_wake_readers(rs);
}

/* The peer's HELLO is here: ours is due. */
void rstream_prelude_heard(struct rstream *rs)
{
	rs->plain.ring = false;		/* we come back now */
	if (rs->plain.dir.tx == RSTREAM_SPAN)
		clear_bit(RSTREAM_WANT_PLAIN, &rs->want);	/* a further one */
	if (rstream_plain_heard(&rs->plain.dir, rs->sk->sk_shutdown & SEND_SHUTDOWN))
		rstream_hello_say(rs);
	else if (rs->plain.dir.tx == RSTREAM_ENDED)
		rs->rx.limit = ENDLESS;
	else
		set_bit(RSTREAM_WANT_ACK, &rs->want);	/* our window counts again */
}

/* Where we can't tell the peer when to stop TCP has to: take no more than that. */
static bool by_tcp(const struct rstream *rs)
{
	return rs->plain.dir.tx == RSTREAM_ENDED || rs->plain.dir.rx == RSTREAM_SPAN ||
	       (rstream_rx_plain(rs) && rs->rx.arrived > RSW_PRELUDE);
}

/*
 * Is the peer's HELLO among what comes now?  Without it we may not send, so it cannot wait for
 * a program that sends before it reads: there is as much room as the memory of the queue.
 */
static bool hello_comes(struct rstream *rs)
{
	return looks_for_hello(rs) ||
	       (rs->plain.dir.rx == RSTREAM_SPAN && stream_here(rs) > rs->plain.dir.rx_end &&
		byte_behind_span(rs) != RSW_PLAIN);
}

bool rstream_prelude_full(struct rstream *rs)
{
	return by_tcp(rs) && rs->rxq.bytes >= rs->rxq.window && !hello_comes(rs);
}

/* Do bytes that the program does not read, or a want of memory, keep us from what follows? */
bool rstream_rx_held(struct rstream *rs)
{
	return rs->in.throttled || rs->plain.held || rstream_prelude_full(rs);
}

/* Both directions are plain, and what comes is left to TCP: a reader need do nothing. */
bool rstream_prelude_untouched(const struct rstream *rs)
{
	return rstream_tx_plain(rs) && rstream_rx_plain(rs) && !rs->plain.held &&
	       !rs->in.throttled && !rs->in.part_len && !rs->rxring && !rs->granted.full &&
	       !rs->urg.state && !looks_for_hello(rs);
}

/* The program has read: is there room for more? */
void rstream_prelude_more(struct rstream *rs)
{
	if (!rs->plain.held && (!by_tcp(rs) || (rstream_rx_plain(rs) && !looks_for_hello(rs))))
		return;
	rstream_parse(rs);
	rstream_prelude_cut(rs);
}

/* A reader that finds nothing in the queue; TCP may have closed behind what it still has. */
void rstream_prelude_refill(struct rstream *rs)
{
	if (!rs->rxq.bytes && (rs->plain.held || rs->plain.dir.tx == RSTREAM_ENDED))
		rstream_prelude_more(rs);
}

/* ---- to the program ---- */

struct pull {
	struct rstream *rs;
	u64 end;
};

static int keep_actor(read_descriptor_t *desc, struct sk_buff *skb,
		      unsigned int off, size_t len)
{
	const struct pull *pull = desc->arg.data;
	struct rstream *rs = pull->rs;

	return rs->plain.lazy && rs->rxq.bytes <= pull->end ?
	       keep(rs, skb, off, len) : 0;
}

/*
 * Of what is left with TCP, the byte @end behind the next goes to the queue, and no
 * more than comes with it: TCP gives the peer room for as much.
 * Return: false without memory.
 */
bool rstream_prelude_pull(struct rstream *rs, u64 end)
{
	struct pull pull = { .rs = rs, .end = end };
	read_descriptor_t desc = { .arg.data = &pull, .count = 1 };

	if (!rs->plain.lazy || rs->rxq.bytes > end)
		return true;
	tcp_read_sock(rs->sk, &desc, keep_actor);
	return !rs->plain.lazy || rs->rxq.bytes > end;
}

static int copy_actor(read_descriptor_t *desc, struct sk_buff *skb,
		      unsigned int off, size_t len)
{
	size_t n = min(len, desc->count);

	if (skb_copy_datagram_msg(skb, off, desc->arg.data, n)) {
		desc->error = -EFAULT;
		return 0;
	}
	desc->count -= n;
	return n;
}

/* Up to @len bytes from TCP's queue.  Return: bytes or -EFAULT. */
int rstream_prelude_copy(struct rstream *rs, struct msghdr *msg, size_t len)
{
	read_descriptor_t desc = { .arg.data = msg };
	int n;

	desc.count = min_t(u64, len, rs->plain.lazy);
	n = tcp_read_sock(rs->sk, &desc, copy_actor);
	if (n <= 0)
		return desc.error ?: -EFAULT;
	WRITE_ONCE(rs->rx.consumed, rs->rx.consumed + n);
	smp_store_release(&rs->plain.lazy, rs->plain.lazy - n);	/* as rstream_rx_consume() */
	rstream_hist_read(rs);
	return n;
}
