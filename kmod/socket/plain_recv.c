// SPDX-License-Identifier: GPL-2.0-only
/*
 * Receiving bytes without records; plain.c explains them.
 *
 * They are not touched: as long as no HELLO is due, they stay in TCP's queue, counted by
 * rstream_plain_rx.in_tcp, until the program reads them.  What is behind the end of a span stays
 * there, too, if it is nothing but further spans.
 *
 * Socket held; never sleeps, except while it copies to programs.
 */
#include <net/tcp.h>

#include "base/stats.h"
#include "option_hook.h"
#include "stream.h"
#include "tcpq.h"

/* @n bytes of data have arrived. */
static bool arrived(struct rstream *rs, size_t n)
{
	if (rstream_refuses(rs, rs->plain.rx_start + (u32)(rs->rx.arrived + n))) {
		rstream_fail(rs, RSTREAM_R_NONE, ECONNRESET);
		return false;
	}
	rs->rx.arrived += n;
	rs->rxq.at = tcp_jiffies32;
	rstream_count_tcp_rx(rs, n);
	if (rs->af_ops)
		rstream_option_client_off(rs);		/* the server needs no CONFIRM now */
	if (rs->hist)
		rstream_hist_arrived(rs, rs->rx.arrived);
	return true;
}

/* Stream offset of the end of TCP's queue. */
static u64 end_in_tcp(const struct rstream *rs)
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

/* Is @seq beyond the span being received?  @seq is near rx.arrived; the span may exceed 4 GiB. */
static bool beyond_span(const struct rstream *rs, u32 seq)
{
	s32 ahead = seq - (rs->plain.rx_start + (u32)rs->rx.arrived);

	return rs->plain.phase.rx == RSTREAM_SPAN && ahead >= 0 &&
	       ahead >= rs->plain.phase.rx_end - rs->rx.arrived;
}

/*
 * Turn TCP's urgent mark into ours.  Once the byte has arrived, clear TCP's mark, because
 * tcp_read_sock() would stop there.
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

/* TCP's FIN has arrived, without HELLO. */
static void got_tcp_fin(struct rstream *rs)
{
	rstream_rx_fin(&rs->rx, rs->rx.arrived);
	/* the peer can send nothing after it, not even an answer to our GRANT */
	if (rs->rx.state == RSTREAM_GRANTED)
		rstream_leave_switch_got(rs, rs->rx.arrived);
	if (!rstream_plain_one_way(rs) || rs->hello.in)
		return;
	rs->hello.in = true;
	if (!rstream_closed(rs))
		rstream_timer(rs, 0);
	rstream_mib_inc(rs->rn, RSTREAM_MIB_FRAMED);
}

/* Can the peer's HELLO arrive before the end of its prelude or span? */
static bool expects_hello(const struct rstream *rs)
{
	return rstream_phase_expects_hello(&rs->plain.phase, rs->rx.state == RSTREAM_GRANTED);
}

/* ---- what is behind a span in TCP's queue ---- */

/*
 * PLAIN is expected in TCP's queue, @at bytes after the end of the span that we receive.
 * Return: length of its span; 0 if it has not arrived completely; -1 if it is something else,
 * or a span shorter than those that we send: to look for each of these would take long
 */
static s64 span_at(const struct rstream *rs, u64 at)
{
	u8 bytes[RSTREAM_PLAIN_LEN];
	u32 seq = rs->plain.rx_start + (u32)rs->plain.phase.rx_end + (u32)at;
	unsigned int n = rstream_tcpq_peek(rs->sk, seq, bytes, sizeof(bytes));
	struct rstream_record rec = {};

	if (!n || bytes[0] != RSW_PLAIN)
		return -1;
	if (n < sizeof(bytes))
		return 0;
	if (rstream_record_header(bytes, &rec) != sizeof(struct rsw_plain) ||
	    !rstream_record_payload(bytes + sizeof(struct rsw_header), &rec) ||
	    rec.span < RSTREAM_SPAN_FIRST)
		return -1;
	return rec.span;
}

/*
 * @n bytes have arrived after the span that we receive.  Return: are these only spans?  Counts what
 * the program can read there.
 */
static bool only_spans(struct rstream *rs, u64 n)
{
	u64 plains, here;
	s64 span;

	while (n > rs->plain_rx.clear && !rs->plain_rx.other) {
		span = span_at(rs, rs->plain_rx.clear);
		if (!span)
			break;
		if (span < 0) {
			WRITE_ONCE(rs->plain_rx.other, true);
			break;
		}
		rs->plain_rx.clear += RSTREAM_PLAIN_LEN + span;
		rs->plain_rx.spans++;
	}
	here = min(n, rs->plain_rx.clear);
	plains = rs->plain_rx.spans * RSTREAM_PLAIN_LEN;
	/* it is less only if a peer retransmits bytes of TCP with other contents */
	WRITE_ONCE(rs->plain_rx.behind, here > plains ? here - plains : 0);
	return !rs->plain_rx.other || n <= rs->plain_rx.clear;
}

/*
 * TCP's queue extends beyond the end of a span, up to @here.  While the program has yet to read
 * the span, further spans may stay there: to take their PLAIN, we would have to take all data
 * before it, too.  HELLO may not stay, because its sender waits for ours; nor may an urgent mark,
 * which the program may read at once.
 */
static bool may_stay_in_tcp(struct rstream *rs, u64 here)
{
	u64 end = rs->plain.phase.rx_end;

	return rs->plain.phase.rx == RSTREAM_SPAN &&
	       (rs->plain_rx.in_tcp || rs->rx.arrived < end) && !tcp_sk(rs->sk)->urg_data &&
	       only_spans(rs, here - end);
}

/* ---- what has arrived stays in TCP's queue ---- */

/* Has the span that we receive ended, and been read, so that a record follows in TCP's queue? */
bool rstream_plain_recv_span_over(const struct rstream *rs)
{
	return rs->plain.phase.rx == RSTREAM_SPAN && !rs->plain_rx.in_tcp &&
	       rs->rx.arrived == rs->plain.phase.rx_end;
}

/* Are there bytes in rstream.part that may turn out to be data? */
bool rstream_plain_recv_partial(const struct rstream *rs)
{
	return rs->in.part_len && rstream_rx_plain(rs) &&
	       (rs->plain.phase.rx != RSTREAM_SPAN || rs->rx.arrived != rs->plain.phase.rx_end);
}

/* Does what comes next stay in TCP's queue? */
bool rstream_plain_recv_stays(struct rstream *rs)
{
	u64 here;

	if (rs->plain.phase.rx != RSTREAM_SPAN || rs->plain_rx.in_tcp || rs->in.part_len ||
	    rs->rx.arrived == rs->plain.phase.rx_end || rstream_closed(rs) || expects_hello(rs))
		return false;
	here = end_in_tcp(rs);
	return here <= rs->plain.phase.rx_end || may_stay_in_tcp(rs, here);
}

/*
 * If TCP's queue cannot contain a HELLO, count the data there and leave it.
 * Return: false if the queue has to be parsed.
 */
bool rstream_plain_recv(struct rstream *rs)
{
	u64 here = end_in_tcp(rs), end = rs->plain.phase.rx_end, news;
	bool more, fin = rs->rx.fin;

	take_mark(rs);
	if (expects_hello(rs) || rstream_closed(rs) || rs->in.part_len || rs->plain_rx.part_is_data)
		return false;
	more = rs->plain.phase.rx != RSTREAM_PLAIN && here > end;
	if (more && !may_stay_in_tcp(rs, here))
		return false;
	WRITE_ONCE(rs->in.left, more ? RSTREAM_LEFT_UNREAD : RSTREAM_LEFT_NONE);
	news = (more ? end : here) - rs->rx.arrived;
	if (news && arrived(rs, news))
		WRITE_ONCE(rs->plain_rx.in_tcp, rs->plain_rx.in_tcp + news);
	if (!more)
		rstream_plain_recv_eof(rs);
	if (news || rs->rx.fin != fin)
		rstream_rxq_wake(rs);
	if (more)
		rstream_rxq_wake_news(rs);
	return true;
}

/*
 * Are both directions plain, with nothing of ours under way or unread?  The peer's HELLO could only
 * come before the end of its span if it had a GRANT to answer.
 */
static bool plain_both(const struct rstream *rs)
{
	return rstream_tx_plain(rs) && rstream_rx_plain(rs) &&
	       rs->in.left != RSTREAM_LEFT_SCARCE &&
	       !rs->in.part_len && !rs->rxring && !rs->granted.full && !rs->urg.state &&
	       rs->rx.state != RSTREAM_GRANTED;
}

/*
 * Fast path of rstream_plain_recv(): both directions are plain, and nothing but bytes of spans has
 * arrived.  Return: false if this is not the case.
 */
bool rstream_plain_recv_fast(struct rstream *rs)
{
	const struct sock *sk = rs->sk;
	u64 here, news, end = rs->plain.phase.rx_end;

	if (!plain_both(rs) || rs->plain_rx.part_is_data || rs->shutdown == SHUTDOWN_MASK ||
	    tcp_sk(sk)->urg_data || rs->rx.fin != !!(sk->sk_shutdown & RCV_SHUTDOWN) ||
	    sk->sk_rcvlowat > 1)
		return false;
	here = end_in_tcp(rs);
	if (rs->in.left == RSTREAM_LEFT_UNREAD) {
		if (rs->plain.phase.rx != RSTREAM_SPAN || !rs->plain_rx.in_tcp ||
		    rs->rx.arrived != end || !only_spans(rs, here - end))
			return false;
		rstream_rxq_wake_news(rs);
		return true;
	}
	if (rs->plain.phase.rx != RSTREAM_PLAIN && here > end)
		return false;
	news = here - rs->rx.arrived;
	if (!news)
		return true;
	if (rs->rx.fin || !arrived(rs, news))
		return false;
	WRITE_ONCE(rs->plain_rx.in_tcp, rs->plain_rx.in_tcp + news);
	WRITE_ONCE(rs->rxq.signalled, here);		/* as rstream_rxq_wake() */
	rstream_wake(rs);
	return true;
}

/* ---- the end ---- */

/* Noted when TCP reports its end: later, the program may have fetched sk_err. */
void rstream_plain_recv_note_reset(struct rstream *rs)
{
	if (rs->sk->sk_state == TCP_CLOSE && rs->sk->sk_err)
		rs->plain_rx.reset = true;
}

/*
 * If our TCP FIN is out, and the peer's arrives after records but without a FIN record, the stream
 * is truncated.
 */
void rstream_plain_recv_check_truncated(struct rstream *rs)
{
	struct sock *sk = rs->sk;

	rstream_plain_recv_note_reset(rs);
	if (rs->plain.phase.tx != RSTREAM_ENDED || rs->rx.fin || rs->error || rstream_closed(rs) ||
	    sk->sk_state != TCP_CLOSE || rs->plain_rx.reset || rstream_tcpq_unread(sk))
		return;
	rstream_fail_closed(rs, RSTREAM_R_TRUNCATED, ECONNRESET);
}

/* Has the peer's stream ended?  Everything that has arrived has been processed. */
void rstream_plain_recv_eof(struct rstream *rs)
{
	const struct sock *sk = rs->sk;

	if (!rstream_rx_plain(rs) || rs->rx.fin || !(sk->sk_shutdown & RCV_SHUTDOWN) ||
	    (sk->sk_state == TCP_CLOSE && sk->sk_err))
		return;
	if (rs->in.part_len)
		rstream_plain_recv_not_hello(rs, true);
	if (!rs->in.part_len)
		got_tcp_fin(rs);
}

/* ---- what has to be parsed ---- */

/*
 * How many bytes may come before HELLO, at most.  The peer answers our HELLO even after the end
 * of its prelude, if ours was still on its way when the peer continued without records.
 */
static u64 bytes_before_hello(const struct rstream *rs)
{
	bool on = rs->plain.phase.rx == RSTREAM_PLAIN ||
		  (rs->plain.phase.rx == RSTREAM_PRELUDE && !rstream_tx_plain(rs));

	return on ? RSTREAM_ENDLESS : rs->plain.phase.rx_end - rs->rx.arrived;
}

/* Move data from TCP to rxq.  What was left in TCP's queue has been counted before. */
static unsigned int move_to_rxq(struct rstream *rs, struct sk_buff *skb,
				unsigned int off, unsigned int len)
{
	unsigned int n = min_t(u64, len, rs->plain_rx.in_tcp);

	if (n) {
		n = rstream_rxq_add(rs, skb, off, n);
		/* lockless readers must not miss them: pairs with rstream_rxq_ready() */
		smp_store_release(&rs->plain_rx.in_tcp, rs->plain_rx.in_tcp - n);
		return n;
	}
	len = rstream_rxq_add(rs, skb, off, len);
	if (len)
		arrived(rs, len);
	return len;
}

/*
 * Has the peer sent all that is here before it received our HELLO?  Then that is not acknowledged
 * yet, and nothing here is an answer to it.  At the end of a prelude, HELLO may come by itself.
 */
static bool precedes_answer(const struct rstream *rs)
{
	return rs->plain.phase.tx == RSTREAM_RECORDS && rs->rx.state != RSTREAM_GRANTED &&
	       (test_bit(RSTREAM_WANT_HELLO, &rs->want) ||
		before(tcp_sk(rs->sk)->snd_una, rs->hello.end)) &&
	       end_in_tcp(rs) <= rs->plain.phase.rx_end;
}

/* How many bytes come before the first one that could begin a HELLO. */
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
 * Queue the bytes at @off that cannot be HELLO.  Return: how many; 0 without memory, or,
 * with *@hello set, if a HELLO may begin or continue at @off.
 */
unsigned int rstream_plain_recv_parse(struct rstream *rs, struct sk_buff *skb,
				      unsigned int off, unsigned int len, bool *hello)
{
	u64 left = bytes_before_hello(rs);

	*hello = false;
	if (rs->plain_rx.in_tcp)
		return move_to_rxq(rs, skb, off, len);
	len = rs->in.part_len ? 0 : min_t(u64, len, left);
	if (len && expects_hello(rs) && !precedes_answer(rs))
		len = before_hello(skb, off, len);
	if (len)
		return move_to_rxq(rs, skb, off, len);
	*hello = true;
	return 0;
}

/* The first @n bytes of rstream.part have turned out to be data. */
static bool queue_part(struct rstream *rs, unsigned int n)
{
	if (!rstream_rxq_add_bytes(rs, rs->part, n))
		return false;
	arrived(rs, n);
	rs->in.part_len -= n;
	memmove(rs->part, rs->part + n, rs->in.part_len);
	return true;
}

/*
 * rstream.part does not begin with a HELLO or, if @none, contains no beginning of one.
 * Without memory, rstream_parse() tries again later.
 */
void rstream_plain_recv_not_hello(struct rstream *rs, bool none)
{
	u8 role = rs->server ? RSW_ROLE_SYN : RSW_ROLE_SYNACK;
	u64 nonce = rstream_role_nonce(rs, role);
	struct rstream_hello hello;
	unsigned int n, used;

	rs->plain_rx.part_is_data = false;
	do {
		u64 left = bytes_before_hello(rs);
		u8 *next = memchr(rs->part + 1, RSW_MAGIC[0], rs->in.part_len - 1);

		if (!left && rs->plain.phase.rx == RSTREAM_SPAN) {
			/* PLAIN begins here, unless it should be HELLO but is not one */
			if (none && rs->plain_rx.reset)
				rs->in.part_len = 0;	/* so that no end counts as missing */
			else if (none || rs->part[0] == (u8)RSW_MAGIC[0])
				rstream_fail(rs, none ? RSTREAM_R_TRUNCATED :
					     RSTREAM_R_BAD_RECORD, ECONNRESET);
			return;
		}
		if (!left) {	/* the peer stays plain, so we need not send HELLO, either */
			rstream_phase_plain(&rs->plain.phase);
			rstream_note_fallback(rs, RSTREAM_R_NO_HELLO);
			left = RSTREAM_ENDLESS;
		}
		n = rs->in.part_len;
		if (!none && next && rs->plain.phase.rx != RSTREAM_PLAIN)
			n = next - rs->part;
		if (!queue_part(rs, min_t(u64, n, left))) {
			rs->plain_rx.part_is_data = true;
			/* reading frees memory */
			rstream_retry(rs, rs->rxq.bytes ? RSTREAM_PATIENT_MS : RSTREAM_RETRY_MS);
			return;
		}
	} while (rs->in.part_len &&
		 (none || rstream_record_read_hello(rs->part, rs->in.part_len, role, nonce,
						    &hello, &used) == RSTREAM_HELLO_NOT));
	rstream_rxq_wake(rs);
}

/* PLAIN has arrived; @seq: TCP sequence number of the byte after it. */
enum rstream_reason rstream_plain_recv_span(struct rstream *rs, u64 len, u32 seq)
{
	enum rstream_reason reason;
	bool answer;

	if (!rs->hello.plain || rs->rx.fin || rs->rx.state > RSTREAM_GRANTED)
		return RSTREAM_R_BAD_RECORD;
	reason = rstream_span_rx(&rs->plain.phase, rs->rx.arrived, len, &answer);
	if (reason)
		return reason;
	/* only a PLAIN that answers ours may have crossed our SWITCH */
	if (answer && rs->tx.state > RSTREAM_GRANTED)
		return RSTREAM_R_BAD_RECORD;
	rs->plain.rx_start = seq - (u32)rs->rx.arrived;
	/* they are counted again, where they go; their readers have been told */
	WRITE_ONCE(rs->plain_rx.behind, rs->plain_rx.behind - min(rs->plain_rx.behind, len));
	if (rs->plain_rx.spans) {
		rs->plain_rx.clear -= min(rs->plain_rx.clear, RSTREAM_PLAIN_LEN + len);
		rs->plain_rx.spans--;
	}
	WRITE_ONCE(rs->plain_rx.other, false);
	if (answer && !rs->tx.fin)
		set_bit(RSTREAM_WANT_PLAIN, &rs->want);
	return RSTREAM_R_NONE;
}

/* The peer's HELLO has arrived: send ours, unless we have. */
void rstream_plain_recv_hello(struct rstream *rs)
{
	rs->plain.ring = false;		/* we return to records now */
	rs->plain_rx.clear = 0;
	rs->plain_rx.spans = 0;
	WRITE_ONCE(rs->plain_rx.behind, 0);
	WRITE_ONCE(rs->plain_rx.other, false);
	if (rs->plain.phase.tx == RSTREAM_SPAN)
		clear_bit(RSTREAM_WANT_PLAIN, &rs->want);	/* no further span */
	if (rstream_phase_hello(&rs->plain.phase, rs->sk->sk_shutdown & SEND_SHUTDOWN))
		rstream_plain_want_hello(rs);
	else if (rs->plain.phase.tx == RSTREAM_ENDED)
		rs->rx.limit = RSTREAM_ENDLESS;
	else
		set_bit(RSTREAM_WANT_ACK, &rs->want);	/* our window counts again */
}

/* The timer has expired: the server's option is still not confirmed, or HELLO is late. */
void rstream_plain_recv_timeout(struct rstream *rs)
{
	if (rs->server && rs->offer.confirmed != RSTREAM_CONFIRMED) {
		rstream_hello_unheard(rs);
		rs->out.due = true;
	}
	if (!rs->in.part_len || !rstream_tx_plain(rs) || rs->rx.arrived != RSW_PRELUDE)
		return;
	/* after a complete magic the rest of a HELLO should be on its way: wait longer for it */
	if (rs->in.part_len < RSW_MAGIC_LEN || !rstream_hello_wait_on(rs))
		rstream_plain_recv_not_hello(rs, true);
}

/* ---- limits ---- */

/* Can only TCP's window stop the peer, because we cannot send it a limit? */
static bool limited_by_tcp(const struct rstream *rs)
{
	return rs->plain.phase.tx == RSTREAM_ENDED || rs->plain.phase.rx == RSTREAM_SPAN ||
	       (rstream_rx_plain(rs) && rs->rx.arrived > RSW_PRELUDE);
}

/*
 * Can what arrives now contain the peer's HELLO?  Until that arrives we may not send.  So it must
 * not wait for a program that sends before it reads: only the memory of rxq limits what we take.
 */
static bool hello_may_come(struct rstream *rs)
{
	u64 here, end = rs->plain.phase.rx_end;

	if (expects_hello(rs))
		return true;
	if (rs->plain.phase.rx != RSTREAM_SPAN)
		return false;
	here = end_in_tcp(rs);
	return here > end && !only_spans(rs, here - end);
}

/* An urgent mark may not wait, either: the program may read its byte before all others. */
bool rstream_plain_recv_full(struct rstream *rs)
{
	return limited_by_tcp(rs) && rs->rxq.bytes >= rs->rxq.window &&
	       !tcp_sk(rs->sk)->urg_data && !hello_may_come(rs);
}

/* After parsing: the span has yet to be counted to its end, so don't count what is behind it. */
void rstream_plain_recv_rest(struct rstream *rs)
{
	if (rs->rx.arrived != rs->plain.phase.rx_end)
		WRITE_ONCE(rs->plain_rx.behind, 0);
}

/* Does unread data, or a lack of memory, keep us from taking more from TCP? */
bool rstream_plain_recv_paused(struct rstream *rs)
{
	return rs->in.left != RSTREAM_LEFT_NONE || rstream_plain_recv_full(rs);
}

/* Both directions are plain, and data stays with TCP: a reader has nothing to do but copy. */
bool rstream_plain_recv_in_tcp(const struct rstream *rs)
{
	return rs->in.left != RSTREAM_LEFT_UNREAD && plain_both(rs);
}

/* The program has read: is there room for more? */
void rstream_plain_recv_more(struct rstream *rs)
{
	if (rs->in.left != RSTREAM_LEFT_UNREAD &&
	    (!limited_by_tcp(rs) || (rstream_rx_plain(rs) && !expects_hello(rs))))
		return;
	rstream_parse(rs);
	rstream_plain_recv_check_truncated(rs);
}

/*
 * A reader has seen all of rxq, which may be empty, or wants to peek further.  TCP may still have
 * data: another span, or what came before it was closed.
 */
void rstream_plain_recv_refill(struct rstream *rs, u64 ahead)
{
	if (rs->rxq.bytes <= ahead &&
	    (rs->in.left == RSTREAM_LEFT_UNREAD || rs->plain.phase.tx == RSTREAM_ENDED))
		rstream_plain_recv_more(rs);
}

/* ---- to the program ---- */

struct pull {
	struct rstream *rs;
	u64 end;
};

static int move_actor(read_descriptor_t *desc, struct sk_buff *skb,
		      unsigned int off, size_t len)
{
	const struct pull *pull = desc->arg.data;
	struct rstream *rs = pull->rs;

	return rs->plain_rx.in_tcp && rs->rxq.bytes <= pull->end ?
	       move_to_rxq(rs, skb, off, len) : 0;
}

/*
 * Move data that was left with TCP to rxq, until that holds more than @end bytes.  Not more than
 * necessary, because TCP opens its window by as much.  Return: false without memory.
 */
bool rstream_plain_recv_pull(struct rstream *rs, u64 end)
{
	struct pull pull = { .rs = rs, .end = end };
	read_descriptor_t desc = { .arg.data = &pull, .count = 1 };

	if (!rs->plain_rx.in_tcp || rs->rxq.bytes > end)
		return true;
	tcp_read_sock(rs->sk, &desc, move_actor);
	return !rs->plain_rx.in_tcp || rs->rxq.bytes > end;
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

/* Copy up to @len bytes from TCP's queue to the program.  Return: bytes or -EFAULT. */
int rstream_plain_recv_copy(struct rstream *rs, struct msghdr *msg, size_t len)
{
	read_descriptor_t desc = { .arg.data = msg };
	int n;

	desc.count = min_t(u64, len, rs->plain_rx.in_tcp);
	n = tcp_read_sock(rs->sk, &desc, copy_actor);
	if (n <= 0)
		return desc.error ?: -EFAULT;
	WRITE_ONCE(rs->rx.consumed, rs->rx.consumed + n);
	/* as rstream_recv_consume() */
	smp_store_release(&rs->plain_rx.in_tcp, rs->plain_rx.in_tcp - n);
	if (rs->hist || rstream_hist_on(rs))
		rstream_hist_read(rs);
	return n;
}

/*
 * Find the byte that is @skip bytes after the next one in TCP's queue.  Between them, spans may end
 * and begin.  Return: how many bytes of the stream follow there in one piece; 0 if there is none.
 * *@seq: its TCP sequence number
 */
static u64 find_in_tcp(const struct rstream *rs, u64 skip, u32 *seq)
{
	u64 end = rs->plain.phase.rx_end, at = 0, here;
	s64 span;

	*seq = tcp_sk(rs->sk)->copied_seq + (u32)skip;
	if (skip < rs->plain_rx.in_tcp)
		return rs->plain_rx.in_tcp - skip;
	if (rs->plain.phase.rx != RSTREAM_SPAN || rs->rx.arrived != end)
		return 0;
	skip -= rs->plain_rx.in_tcp;
	here = end_in_tcp(rs) - end;
	while ((span = span_at(rs, at)) > 0) {
		at += RSTREAM_PLAIN_LEN;
		*seq = rs->plain.rx_start + (u32)(end + at + skip);
		if (skip < span)
			return at + skip < here ? min_t(u64, span - skip, here - at - skip) : 0;
		skip -= span;
		at += span;
	}
	return 0;
}

/*
 * Show the program up to @len bytes that are, and stay, in TCP's queue, @skip bytes after the next
 * one there.  So peeking takes no memory, and TCP opens its window only as the program reads.
 * @msg: NULL to only count them.  Return: bytes, 0 if there are none, or -EFAULT.
 */
int rstream_plain_recv_peek(struct rstream *rs, struct msghdr *msg, size_t len, u64 skip,
			    ktime_t *stamp)
{
	u64 piece;
	u32 seq;

	cond_resched();		/* the peer chooses how many spans there are */
	piece = find_in_tcp(rs, skip, &seq);
	if (!piece)
		return 0;
	return rstream_tcpq_copy(rs->sk, seq, msg, min_t(u64, len, piece), stamp) ?: -EFAULT;
}

/* Does TCP's FIN follow further spans in TCP's queue, so that their end is that of the stream? */
bool rstream_plain_recv_ends(const struct rstream *rs)
{
	const struct sk_buff *tail = skb_peek_tail(&rs->sk->sk_receive_queue);

	return rs->in.left == RSTREAM_LEFT_UNREAD && rs->plain_rx.in_tcp && tail &&
	       TCP_SKB_CB(tail)->tcp_flags & TCPHDR_FIN &&
	       rs->plain.phase.rx == RSTREAM_SPAN && rs->rx.arrived == rs->plain.phase.rx_end &&
	       end_in_tcp(rs) - rs->rx.arrived <= rs->plain_rx.clear;
}
