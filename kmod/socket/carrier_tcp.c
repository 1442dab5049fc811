// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tcp carrier and the control records: our bytes on the TCP connection.
 *
 * Sending, rstream_tcp_push(): control records and headers go to TCP through a small buffer
 * (ctl); the payload of a DATA record follows page by page from the transmit queue.  A header
 * is sent only when all of its payload is queued, so no record ever waits for the program.
 *
 * Receiving, rstream_parse(): runs as data arrives, whether the program reads or not.  Payload
 * is kept as clones of TCP's skbs, limited by the window that we have sent to the peer.  So
 * TCP's own window stays open even if the program does not read, and control records don't
 * wait behind data.  The exception is a lack of memory: then data is left with TCP, and taken
 * as the program reads.
 *
 * Socket held; never sleeps.
 */
#include <net/tcp.h>

#include "base/stats.h"
#include "base/trace.h"
#include "option_hook.h"
#include "stream.h"
#include "tcpq.h"

/* Don't sleep; we send SIGPIPE ourselves. */
#define SEND_FLAGS	(MSG_DONTWAIT | MSG_NOSIGNAL)
#define SMALL_PAYLOAD	512
/*
 * accept() charges the pages that it finds in sk_forward_alloc and sk_rmem_alloc, but ignores
 * what we have sent by then.  As long as that is less than a page, the charge is exact.
 */
#define CHILD_WMEM	(PAGE_SIZE / 2)

/* ---- sending ---- */

static void frag_sent(struct rstream *rs, struct rstream_frag *frag, u32 n)
{
	frag->off += n;
	frag->len -= n;
	rs->out.rec_left -= n;
	if (!rstream_tx_plain(rs))
		rs->out.payload_end = rstream_tcp_acked_at(rs);
	rstream_txq_gone(rs, n, frag->len ? 0 : frag->charged);
	if (frag->len)
		return;
	list_del(&frag->list);
	rstream_frag_free(frag);
}

/*
 * The payload that is passed to TCP in one call with its header, or NULL.  Copying a few bytes
 * once more is cheaper than a second call.
 */
static struct rstream_frag *small_payload(struct rstream *rs)
{
	struct rstream_frag *frag;

	if (!rs->out.rec_left || rs->out.rec_left > SMALL_PAYLOAD)
		return NULL;
	frag = list_first_entry(&rs->txq.frags, struct rstream_frag, list);
	return frag->len >= rs->out.rec_left && !frag->uarg &&
	       !PageHighMem(frag->page) ? frag : NULL;
}

/* Will TCP's FIN follow at once? */
static bool is_last(const struct rstream *rs)
{
	return rs->close.state == RSTREAM_CLOSING && !sock_flag(rs->sk, SOCK_LINGER) &&
	       rs->tx.fin && !rs->want && !rs->txring &&
	       rs->tx.sent == rs->tx.written;
}

static int send_ctl(struct rstream *rs)
{
	struct rstream_frag *frag = small_payload(rs);
	int head = rs->out.ctl_len - rs->out.ctl_off, all = head, n;
	struct kvec vec[2] = {
		{ .iov_base = rs->ctl + rs->out.ctl_off, .iov_len = head },
	};
	struct msghdr msg = { .msg_flags = SEND_FLAGS };

	if (frag) {
		vec[1].iov_base = page_address(frag->page) + frag->off;
		vec[1].iov_len = rs->out.rec_left;
		all += rs->out.rec_left;
	} else if (rs->out.rec_left || is_last(rs)) {
		msg.msg_flags |= MSG_MORE;
	}
	iov_iter_kvec(&msg.msg_iter, ITER_SOURCE, vec, frag ? 2 : 1, all);
	n = tcp_sendmsg_locked(rs->sk, &msg, all);
	if (n > head)
		frag_sent(rs, frag, n - head);
	return min(n, head);
}

/* Return: true if the buffer is empty now. */
static bool push_ctl(struct rstream *rs)
{
	int n;

	if (rs->out.ctl_off == rs->out.ctl_len)
		return true;
	if (READ_ONCE(rs->sk->sk_err))	/* TCP would fetch it, and the program has to */
		return false;
	n = send_ctl(rs);
	if (n > 0)
		rs->out.ctl_off += n;
	if (rs->out.ctl_off < rs->out.ctl_len)
		return false;
	rs->out.ctl_off = 0;
	rs->out.ctl_len = 0;
	return true;
}

static int send_frag(struct rstream *rs, struct rstream_frag *frag, u32 n)
{
	int flags = SEND_FLAGS | (n < rs->out.rec_left ? MSG_MORE : 0), sent;

	if (!frag->uarg)
		return rstream_tcp_sendpage(rs->sk, frag->page, frag->off, n,
					    flags);
	sent = rstream_tcp_sendpage_zc(rs->sk, frag->page, frag->off, n, flags,
				       frag->uarg);
	rstream_zerocopy_by_tcp(rs);
	return sent;
}

/* Return: true if TCP has all of the record's payload now. */
static bool push_payload(struct rstream *rs)
{
	while (rs->out.rec_left) {
		struct rstream_frag *frag =
			list_first_entry(&rs->txq.frags, struct rstream_frag, list);
		u32 n = min(frag->len, rs->out.rec_left);
		int sent;

		if (READ_ONCE(rs->sk->sk_err))	/* as in push_ctl() */
			return false;
		sent = send_frag(rs, frag, n);
		if (sent <= 0)
			return false;
		frag_sent(rs, frag, sent);
	}
	return true;
}

static void put_record(struct rstream *rs, const struct rstream_record *rec)
{
	rs->out.ctl_len += rstream_record_write(rs->ctl + rs->out.ctl_len, rec);
}

static void put_ack(struct rstream *rs)
{
	struct rstream_record rec = { .type = RSW_ACK };

	rs->rx.limit = max(rs->rx.limit, rs->rx.consumed + rs->rxq.window);
	rec.ack.consumed = rs->rx.consumed;
	rec.ack.limit = rs->rx.limit;
	put_record(rs, &rec);
}

/* To the ring that was granted, or back to tcp: epoch 0. */
static void put_switch(struct rstream *rs)
{
	struct rstream_record rec = {
		.type = RSW_SWITCH,
		.sw.offset = rs->tx.sent,
	};
	struct rstream_txring *ring = rs->txring;

	if (ring) {
		rstream_tx_switch(&rs->tx);
		rec.sw.epoch = rs->tx.epoch;
		rec.sw.ring = ring->id;
		rec.sw.cell_addr = ring->cell_addr;
		rec.sw.cell_rkey = ring->cell_rkey;
		rec.sw.proof = rstream_ring_switch_proof(rs, &rec);
		rstream_plain_span_reset(rs);
		rstream_switched(rs, RSTREAM_DIR_TX, RSTREAM_INFO_CARRIER_RING,
				 rs->tx.sent, RSTREAM_R_RING_GRANTED);
	} else if (rs->tx.taken) {
		/* otherwise, the grant was refused, and the carrier does not change */
		rstream_switched(rs, RSTREAM_DIR_TX, RSTREAM_INFO_CARRIER_TCP,
				 rs->tx.sent, rs->leave.tx_why);
	}
	put_record(rs, &rec);
}

/* A record that the peer has to answer: its time begins when TCP has delivered it. */
static void put_question(struct rstream *rs, const struct rstream_record *rec)
{
	put_record(rs, rec);
	rs->out.asked_end = rstream_tcp_acked_at(rs) + rs->out.ctl_len;
}

static void put_grant(struct rstream *rs)
{
	put_question(rs, &rs->granted.rec);
	rs->granted.rec.type = 0;
}

/* BROKEN and REVOKE, or STOPPED, which precedes the SWITCH that ends its epoch. */
static void put_epoch(struct rstream *rs, u8 type, u32 epoch)
{
	const struct rstream_record rec = { .type = type, .epoch = epoch };

	if (type == RSW_STOPPED)
		put_record(rs, &rec);
	else
		put_question(rs, &rec);
}

static void put_resume(struct rstream *rs)
{
	struct rstream_record rec = { .type = RSW_RESUME };

	rec.resume.epoch = rs->rx.epoch;
	rec.resume.count = rs->rx.count;
	trace_rstream_resume(rs->sk, RSTREAM_DIR_RX, rs->rx.epoch,
			     rs->rx.base + rs->rx.count, rs->reason);
	put_question(rs, &rec);
}

/* URG goes ahead of the urgent byte, on whichever carrier that travels. */
static bool put_urg(struct rstream *rs)
{
	struct rstream_record rec = { .type = RSW_URG, .offset = rs->urg.sent };

	/* sent before the peer's HELLO, which turned out to lack RSW_CAP_URG */
	if (!rs->hello.urg)
		return false;
	put_record(rs, &rec);
	rs->out.urg_end = rstream_tcp_acked_at(rs) + rs->out.ctl_len;
	return true;
}

/* FIN is sent after the last byte, on whichever carrier that went. */
static bool put_fin(struct rstream *rs)
{
	struct rstream_record rec = { .type = RSW_FIN };

	if (rs->tx.sent != rs->tx.written)
		return false;
	rec.offset = rs->tx.sent;
	rs->tx.fin = true;
	put_record(rs, &rec);
	rs->out.payload_end = rstream_tcp_acked_at(rs) + rs->out.ctl_len;
	return true;
}

static bool is_wanted(struct rstream *rs, enum rstream_want what)
{
	return test_and_clear_bit(what, &rs->want);
}

/* The peer has closed TCP, and would answer records with a reset. */
static bool peer_gone(const struct rstream *rs)
{
	return rs->sk->sk_shutdown & RCV_SHUTDOWN && rs->plain.phase.rx == RSTREAM_RECORDS;
}

/* Put the next control record that is wanted into the buffer. */
static bool next_control(struct rstream *rs)
{
	struct rstream_record rec = { .type = RSW_LINK };

	if (rs->plain.phase.tx == RSTREAM_SPAN && rstream_plain_span_control(rs, &rec)) {
		put_record(rs, &rec);
		return true;
	}
	if (rstream_tx_plain(rs)) {
		rstream_plain_send_fin(rs);
		return false;
	}
	if (is_wanted(rs, RSTREAM_WANT_HELLO)) {
		rs->out.payload_end = rstream_tcp_acked_at(rs);
		rs->out.ctl_len += rstream_hello_put(rs, rs->ctl + rs->out.ctl_len);
		return true;
	}
	if (peer_gone(rs)) {
		rs->want &= BIT(RSTREAM_WANT_FIN);
		if (rs->want && rs->tx.sent == rs->tx.written) {
			rs->want = 0;
			rs->tx.fin = true;
		}
		return false;
	}
	if (rs->plain.phase.rx == RSTREAM_ENDED)	/* the peer can't answer anything else */
		rs->want &= BIT(RSTREAM_WANT_FIN);
	if (rs->hello.in && is_wanted(rs, RSTREAM_WANT_URG) && put_urg(rs))
		return true;
	if (is_wanted(rs, RSTREAM_WANT_LINK))
		put_record(rs, &rec);
	else if (is_wanted(rs, RSTREAM_WANT_BROKEN))
		put_epoch(rs, RSW_BROKEN, rs->tx.epoch);
	else if (is_wanted(rs, RSTREAM_WANT_RESUME))
		put_resume(rs);
	else if (is_wanted(rs, RSTREAM_WANT_STOPPED))
		put_epoch(rs, RSW_STOPPED, rs->tx.epoch);
	else if (!test_bit(RSTREAM_WANT_PLAIN, &rs->want) && is_wanted(rs, RSTREAM_WANT_SWITCH))
		put_switch(rs);		/* a PLAIN that answers the peer's comes first */
	else if (is_wanted(rs, RSTREAM_WANT_ACK))
		put_ack(rs);
	else if (is_wanted(rs, RSTREAM_WANT_GRANT))
		put_grant(rs);
	else if (is_wanted(rs, RSTREAM_WANT_REVOKE))
		put_epoch(rs, RSW_REVOKE, rs->rx.epoch);
	else if (rstream_plain_span_control(rs, &rec))
		put_record(rs, &rec);
	else if (!test_bit(RSTREAM_WANT_FIN, &rs->want) || !put_fin(rs))
		return false;
	else
		rs->want &= ~BIT(RSTREAM_WANT_FIN);
	return true;
}

/* Does TCP have bytes that it can send only after an ACK? */
static bool tcp_is_full(const struct tcp_sock *tp)
{
	return tp->write_seq != tp->snd_nxt &&
	       (tcp_packets_in_flight(tp) >= tcp_snd_cwnd(tp) ||
		after(tp->write_seq, tcp_wnd_end(tp)));
}

/*
 * A few bytes wait for an ACK if TCP waits for one, too, or, without TCP_NODELAY, if two small
 * records are unacknowledged.  (In RFC 896, already the second waits for the first; but programs
 * often write twice and then read, which would be slow.)  on_write_space() continues.
 */
static bool autocorks(const struct rstream *rs, u64 queued)
{
	const struct tcp_sock *tp = tcp_sk(rs->sk);

	if (!rstream_txq_may_autocork(rs, queued))
		return false;
	return tcp_is_full(tp) ||
	       (rs->out.nagle && queued < tp->mss_cache && tp->snd_una != tp->snd_nxt &&
		after(rs->out.small_seq[1], tp->snd_una));
}

static void small_look(struct rstream *rs, u32 len)
{
	const struct tcp_sock *tp = tcp_sk(rs->sk);

	if (len < tp->mss_cache) {
		rs->out.small_seq[1] = rs->out.small_seq[0];
		rs->out.small_seq[0] = tp->write_seq + rs->out.ctl_len + len;
	} else if (!after(rs->out.small_seq[0], tp->snd_una)) {
		/* keep them close to snd_una, before sequence numbers wrap */
		rs->out.small_seq[1] = tp->snd_una;
		rs->out.small_seq[0] = tp->snd_una;
	}
}

/* Begin a DATA record with as many queued bytes as the window allows. */
static bool next_data(struct rstream *rs)
{
	struct rstream_record rec = { .type = RSW_DATA };
	u64 queued = rs->tx.written - rs->tx.sent;
	u64 window = rstream_tx_window(&rs->tx);

	if (!queued || rs->tx.state >= RSTREAM_ON_RING || rs->txq.corked_at ||
	    rstream_tx_plain(rs) || test_bit(RSTREAM_WANT_URG, &rs->want))
		return false;
	if (!window) {
		rstream_mib_inc(rs->rn, RSTREAM_MIB_STALL_WINDOW);
		return false;
	}
	if (autocorks(rs, queued)) {
		rs->out.waits = RSTREAM_OUT_CORKED;
		set_bit(SOCK_NOSPACE, &rs->sk->sk_socket->flags);
		return false;
	}
	rec.len = min3(queued, window, (u64)RSW_DATA_MAX);
	put_record(rs, &rec);
	small_look(rs, rec.len);
	rs->out.rec_left = rec.len;
	rs->tx.sent += rec.len;
	rs->txq.at = jiffies;
	rstream_count_tcp_tx(rs, rec.len);
	rstream_ring_grant_look(rs);
	return true;
}

/* Is there room in the buffer for the next record?  A SWITCH ends a span, so HELLO precedes it. */
static bool ctl_room(const struct rstream *rs)
{
	bool hello = test_bit(RSTREAM_WANT_HELLO, &rs->want) ||
		     (rs->plain.phase.tx == RSTREAM_SPAN &&
		      test_bit(RSTREAM_WANT_SWITCH, &rs->want));

	return rs->out.ctl_len + (hello ? RSW_HELLO_MAX : RSTREAM_RECORD_MAX) <= sizeof(rs->ctl);
}

/* Put records for one call of TCP's send into the buffer.  Return: false if none is due. */
static bool next_records(struct rstream *rs)
{
	bool any = false;

	if (!rs->accepted && rs->sk->sk_wmem_queued >= CHILD_WMEM)
		return false;	/* on_write_space() continues */
	if (rstream_tx_plain(rs) && rs->tx.written != rs->tx.sent && rstream_plain_tx_over(rs))
		rstream_plain_tx_next(rs, rstream_plain_recv_paused(rs));
	if (rstream_tx_plain(rs)) {
		rs->out.rec_left = rstream_plain_data(rs);
		return rs->out.rec_left || next_control(rs);
	}
	if (rs->tx.written != rs->tx.sent && rstream_plain_span_due(rs))
		set_bit(RSTREAM_WANT_PLAIN, &rs->want);
	while (ctl_room(rs)) {
		if (!rs->want || !next_control(rs))
			return next_data(rs) || any;
		WARN_ON_ONCE(rs->out.ctl_len > sizeof(rs->ctl));
		any = true;
	}
	return any;
}

static void push_all(struct rstream *rs)
{
	rs->out.waits = RSTREAM_OUT_BLOCKED;	/* until all is pushed */
	do {
		if (!push_ctl(rs) || !push_payload(rs)) {
			rs->out.waits = RSTREAM_OUT_BLOCKED;
			rstream_ring_yield(rs);
			return;		/* on_write_space() continues */
		}
		if (rs->tx.state == RSTREAM_ON_RING)
			rstream_ring_push(rs);
		else
			rstream_ring_yield(rs);
	} while (next_records(rs));
	if (rs->out.waits == RSTREAM_OUT_BLOCKED)
		rs->out.waits = RSTREAM_OUT_READY;

	/* both streams have ended and everything is here: no further record is needed */
	if (rs->tx.fin && rs->rx.fin && rs->rx.arrived == rs->rx.fin_at && rstream_txq_done(rs))
		rstream_shutdown_tcp(rs);
}

/* Here, TCP's send must neither sleep for memory nor let a record wait for an ACK (Nagle). */
void rstream_tcp_push(struct rstream *rs)
{
	struct sock *sk = rs->sk;
	struct tcp_sock *tp = tcp_sk(sk);
	bool task_frag = sk->sk_use_task_frag;
	typeof(sk->sk_tsflags) tsflags = sk->sk_tsflags;
	gfp_t gfp = sk->sk_allocation;
	u8 nonagle = tp->nonagle;
	u32 seq = tp->write_seq;

	sk->sk_allocation = sk_gfp_mask(sk, GFP_ATOMIC);
	sk->sk_use_task_frag = task_frag && in_task();
	rs->out.nagle = !(nonagle & TCP_NAGLE_OFF);
	tp->nonagle = TCP_NAGLE_OFF;
	/* a timestamp comes with the packet, so the program would see HELLO */
	WRITE_ONCE(sk->sk_tsflags, tsflags & ~SOF_TIMESTAMPING_TX_RECORD_MASK);
	push_all(rs);
	WRITE_ONCE(sk->sk_tsflags, tsflags);
	rstream_zerocopy_waits(rs);	/* before sequence number zc.seq wraps */
	tp->nonagle = nonagle;
	/* nor may those that TCP could not send at once; it clears this bit when more is queued */
	if (tp->write_seq != seq && tcp_send_head(sk))
		tp->nonagle |= TCP_NAGLE_PUSH;
	sk->sk_allocation = gfp;
	sk->sk_use_task_frag = task_frag;
	/* an idle socket need not keep these 32 KiB, unless send calls use them, too */
	if (sk->sk_frag.page && sk_page_frag(sk) != &sk->sk_frag) {
		put_page(sk->sk_frag.page);
		sk->sk_frag.page = NULL;
	}
	/* without memory (or in TCP_REPAIR) and with empty queues, TCP would never call us back */
	if (rs->out.waits == RSTREAM_OUT_BLOCKED && tcp_rtx_and_write_queues_empty(sk))
		rstream_retry(rs, tp->repair ? RSTREAM_PATIENT_MS : RSTREAM_RETRY_MS);
}

/* ---- receiving ---- */

static enum rstream_reason got_ack(struct rstream *rs,
				   const struct rstream_record *rec)
{
	return rstream_tx_ack(&rs->tx, rec->ack.consumed, rec->ack.limit);
}

static enum rstream_reason got_control(struct rstream *rs,
				       const struct rstream_record *rec)
{
	enum rstream_reason reason;

	switch (rec->type) {
	case RSW_ACK:
		return got_ack(rs, rec);
	case RSW_GRANT:
		return rstream_ring_grant_got(rs, rec);
	case RSW_SWITCH:
		if (!rstream_grant_sent(&rs->granted))
			return RSTREAM_R_BAD_SWITCH;
		return rec->sw.epoch ? rstream_ring_switch_got(rs, rec) :
		       rstream_leave_switch_got(rs, rec->sw.offset);
	case RSW_FIN:
		reason = rstream_rx_fin(&rs->rx, rec->offset);
		if (!reason)
			rstream_ring_answer(rs);
		return reason;
	case RSW_LINK:
		rstream_ring_link_asked(rs);
		return RSTREAM_R_NONE;
	case RSW_BROKEN:
		return rstream_leave_broken_got(rs, rec->epoch);
	case RSW_RESUME:
		return rstream_leave_resume_got(rs, rec->resume.epoch,
						rec->resume.count);
	case RSW_REVOKE:
		return rstream_leave_revoke_got(rs, rec->epoch);
	case RSW_STOPPED:
		return rstream_leave_stopped_got(rs, rec->epoch);
	case RSW_URG:
		return rstream_urg_got(rs, rec->offset);
	case RSW_PLAIN:
		return rstream_plain_recv_span(rs, rec->span, rs->in.seq);
	default:
		return RSTREAM_R_BAD_RECORD;
	}
}

/* Gather up to @need bytes in rs->part. Return: bytes taken. */
static unsigned int gather(struct rstream *rs, struct sk_buff *skb,
			   unsigned int off, unsigned int len,
			   unsigned int need)
{
	unsigned int n = min(len, need - rs->in.part_len);

	if (skb_copy_bits(skb, off, rs->part + rs->in.part_len, n))
		return 0;
	rs->in.part_len += n;
	return n;
}

/*
 * How many bytes of a possible HELLO to gather.  If it turns out not to be one, they must not
 * extend beyond the end of the PLAIN record that may follow a span.
 */
static unsigned int hello_need(const struct rstream *rs)
{
	unsigned int have = rs->in.part_len;

	BUILD_BUG_ON(offsetofend(struct rsw_hello, nonce) - RSW_MAGIC_LEN >
		     sizeof(struct rsw_header) + sizeof(struct rsw_plain));
	if (have < RSW_MAGIC_LEN)
		return RSW_MAGIC_LEN;
	if (have < offsetofend(struct rsw_hello, nonce))
		return offsetofend(struct rsw_hello, nonce);
	if (have < RSW_HELLO_LEN)
		return RSW_HELLO_LEN;
	return be16_to_cpu(((struct rsw_hello *)rs->part)->len);
}

static unsigned int parse_hello(struct rstream *rs, struct sk_buff *skb,
				unsigned int off, unsigned int len)
{
	enum rstream_reason reason = RSTREAM_R_BAD_HELLO;
	unsigned int need = hello_need(rs), used, n;
	u8 role = rs->server ? RSW_ROLE_SYN : RSW_ROLE_SYNACK;
	struct rstream_hello hello;

	n = gather(rs, skb, off, len, need);
	switch (rstream_record_read_hello(rs->part, rs->in.part_len, role,
					  rstream_role_nonce(rs, role), &hello,
					  &used)) {
	case RSTREAM_HELLO_PART:
		if (!rs->hello.in && rstream_tx_plain(rs))	/* perhaps it is not one */
			rstream_timer(rs, rs->rn->set.hello_timeout_ms);
		return n;
	case RSTREAM_HELLO_COMPLETE:
		rs->in.part_len = 0;
		reason = rstream_hello_got(rs, &hello);
		break;
	case RSTREAM_HELLO_NOT:
		reason = RSTREAM_R_NO_HELLO;
		if (!rstream_rx_plain(rs))
			break;
		rstream_plain_recv_not_hello(rs, false);
		return n;
	case RSTREAM_HELLO_BAD:
		break;
	}
	if (reason)
		rstream_fail(rs, reason, ECONNRESET);
	return n;
}

static void begin_data(struct rstream *rs, const struct rstream_record *rec)
{
	enum rstream_reason reason;

	if (rstream_refuses(rs, rs->in.seq + 1)) {
		rstream_fail(rs, RSTREAM_R_NONE, ECONNRESET);
		return;
	}
	/* in this order: see rstream_rxq_all_here() */
	WRITE_ONCE(rs->in.data_left, rec->len);
	reason = rstream_rx_data(&rs->rx, rec->len);
	if (reason) {
		WRITE_ONCE(rs->in.data_left, 0);
		rstream_fail(rs, reason, ECONNRESET);
		return;
	}
	rs->rxq.at = tcp_jiffies32;
	rstream_count_tcp_rx(rs, rec->len);
	if (rs->leave.idle_msgs < U8_MAX)
		rs->leave.idle_msgs++;
	rstream_ring_grant_look(rs);
}

static unsigned int parse_record(struct rstream *rs, struct sk_buff *skb,
				 unsigned int off, unsigned int len)
{
	unsigned int head = sizeof(struct rsw_header), n = 0;
	struct rstream_record rec = {};
	enum rstream_reason reason;
	int more;

	if (rs->in.part_len < head) {
		n = gather(rs, skb, off, len, head);
		if (rs->in.part_len < head)
			return n;
	}
	more = rstream_record_header(rs->part, &rec);
	if (more < 0 || (rstream_rx_plain(rs) && rec.type != RSW_PLAIN)) {
		rstream_fail(rs, RSTREAM_R_BAD_RECORD, ECONNRESET);
		return n;
	}
	if (rs->in.part_len < head + more) {
		n += gather(rs, skb, off + n, len - n, head + more);
		if (rs->in.part_len < head + more)
			return n;
	}
	rs->in.part_len = 0;
	rs->in.seq = TCP_SKB_CB(skb)->seq + off + n;
	if (rec.type == RSW_DATA) {
		begin_data(rs, &rec);
	} else if (rstream_record_unknown(&rec)) {
		rs->in.skip_left = rec.len;
	} else {
		reason = rstream_record_payload(rs->part + head, &rec) ?
			 got_control(rs, &rec) : RSTREAM_R_BAD_RECORD;
		if (reason)
			rstream_fail(rs, reason, ECONNRESET);
	}
	return n;
}

/* After a span: does HELLO begin or continue here, and not PLAIN? */
static bool span_hello(const struct rstream *rs, struct sk_buff *skb, unsigned int off)
{
	u8 first = rs->part[0];

	if (!rs->in.part_len && skb_copy_bits(skb, off, &first, sizeof(first)))
		return false;
	return first == (u8)RSW_MAGIC[0];
}

/* Return: bytes used of this piece of TCP's stream, 0: try again later. */
static unsigned int parse_some(struct rstream *rs, struct sk_buff *skb,
			       unsigned int off, unsigned int len)
{
	unsigned int n;
	bool hello;

	/* bytes in the ring precede those that follow here */
	if (rs->rx.state == RSTREAM_LEAVING && !rstream_leave_ring(rs))
		return 0;
	/* PLAIN takes no room, and what follows it stays with TCP */
	if (rs->plain_rx.part_is_data || (!rstream_all_records(rs) && rstream_plain_recv_full(rs) &&
					  !rstream_plain_recv_span_over(rs)))
		return 0;
	/* the record began before that */
	if (rs->in.data_left &&
	    rstream_refuses(rs, TCP_SKB_CB(skb)->seq + off + min(len, rs->in.data_left))) {
		rstream_fail(rs, RSTREAM_R_NONE, ECONNRESET);
		return 0;
	}
	if (rs->in.data_left) {
		n = rstream_rxq_add(rs, skb, off, min(len, rs->in.data_left));
		/* pairs with rstream_rxq_all_here() */
		smp_store_release(&rs->in.data_left, rs->in.data_left - n);
		if (!rs->in.data_left && rs->hist)
			rstream_hist_arrived(rs, rs->rx.arrived);
		return n;
	}
	if (rs->in.skip_left) {
		n = min(len, rs->in.skip_left);
		rs->in.skip_left -= n;
		return n;
	}
	if (rstream_rx_plain(rs)) {
		if (rstream_plain_recv_stays(rs))
			return 0;
		n = rstream_plain_recv_parse(rs, skb, off, len, &hello);
		if (!hello)
			return n;
	}
	if (!rs->hello.in || (rstream_rx_plain(rs) && span_hello(rs, skb, off)))
		return parse_hello(rs, skb, off, len);
	return parse_record(rs, skb, off, len);
}

static int parse_actor(read_descriptor_t *desc, struct sk_buff *skb,
		       unsigned int off, size_t len)
{
	struct rstream *rs = desc->arg.data;
	size_t used = 0;

	while (used < len) {
		unsigned int n;

		if (rs->error)		/* about to be reset: discard */
			return len;
		n = parse_some(rs, skb, off + used, len - used);
		if (!n && !rs->error)
			break;
		used += n;
	}
	return used;
}

static enum rstream_in_left what_is_left(struct rstream *rs)
{
	if (!rstream_tcpq_unread(rs->sk))
		return RSTREAM_LEFT_NONE;
	if (rstream_plain_recv_full(rs))
		return RSTREAM_LEFT_UNREAD;
	return rs->error ? RSTREAM_LEFT_NONE : RSTREAM_LEFT_SCARCE;
}

/*
 * After parsing, which rstream_plain_recv() has not ended.  If there was no memory, try again; less
 * often if the program has something to read, because reading frees memory.
 */
static void look_at_rest(struct rstream *rs)
{
	WRITE_ONCE(rs->in.left, what_is_left(rs));
	if (!rstream_all_records(rs))
		rstream_plain_recv_rest(rs);
	if (rs->in.left == RSTREAM_LEFT_SCARCE)
		rstream_retry(rs, rs->rxq.bytes ? RSTREAM_PATIENT_MS : RSTREAM_RETRY_MS);
}

/*
 * Is TCP's urgent byte, at which tcp_read_sock() stops, in a record?  No honest peer sends that.
 * But TCP's mark may also be announced with records, if the byte is in the span after them.
 */
static bool urgent_in_record(const struct rstream *rs)
{
	const struct tcp_sock *tp = tcp_sk(rs->sk);

	if (rstream_rx_plain(rs) && !rstream_plain_recv_span_over(rs))
		return false;
	return !rs->hello.plain || tp->urg_seq == tp->copied_seq;
}

static void parse_queue(struct rstream *rs)
{
	read_descriptor_t desc = { .arg.data = rs, .count = 1 };
	struct sock *sk = rs->sk;
	u64 ready = rs->rxq.bytes;
	u64 limit = rs->tx.limit;
	bool stays, scarce = rs->in.left == RSTREAM_LEFT_SCARCE;
	u32 seq;

	if (rs->plain_rx.part_is_data)
		rstream_plain_recv_not_hello(rs, false);
	if (rstream_rx_plain(rs) && rstream_plain_recv(rs))
		return;
	if (skb_queue_empty(&sk->sk_receive_queue) && !rstream_rx_plain(rs))
		return;
	/*
	 * Bytes after PLAIN stay with TCP again.  rstream_plain_recv() has to take over TCP's
	 * urgent mark before the queue is read up to it, because TCP would skip that byte.
	 */
	do {
		seq = tcp_sk(sk)->copied_seq;
		tcp_read_sock(sk, &desc, parse_actor);
		stays = rstream_rx_plain(rs) && rstream_tcpq_unread(sk) && !rs->error &&
			rstream_plain_recv(rs);
	} while (!stays && rstream_rx_plain(rs) && rstream_tcpq_unread(sk) &&
		 tcp_sk(sk)->copied_seq != seq);
	if (!stays)
		look_at_rest(rs);
	if (scarce && rs->in.left != RSTREAM_LEFT_SCARCE && sk->sk_shutdown & RCV_SHUTDOWN)
		rstream_queue(rs, RSTREAM_DO_PUSH);	/* check_truncated() */
	if (rstream_rx_plain(rs) && !rstream_tcpq_unread(sk))
		rstream_plain_recv_eof(rs);
	if (tcp_sk(sk)->urg_data && urgent_in_record(rs))
		rstream_fail(rs, RSTREAM_R_BAD_RECORD, ECONNRESET);
	/* a reader that waits for more bytes need not wait for memory */
	if (rs->rxq.bytes != ready || rs->rx.fin ||
	    (rs->in.left == RSTREAM_LEFT_SCARCE && !scarce))
		rstream_rxq_wake(rs);
	/* the flush may send more now, or close TCP */
	if (rs->tx.limit != limit || (rs->rx.fin && rs->tx.fin))
		rs->out.due = true;
}

void rstream_parse_at_fin(struct rstream *rs)
{
	rstream_assert_held(rs);
	/* once our rings are gone, what the peer says about them would seem wrong */
	if (!rstream_released(rs))
		parse_queue(rs);
}

bool rstream_parse(struct rstream *rs)
{
	bool ended = rstream_rxq_ring_ended(rs);

	rstream_assert_held(rs);
	if (rstream_tx_plain(rs) && rstream_plain_recv_fast(rs))
		return true;
	rstream_parse_at_fin(rs);
	/* data wakes nobody that waits only for the end, as by poll() for POLLRDHUP */
	if (!ended && rstream_rxq_ring_ended(rs))
		rstream_tcp4.state_change(rs->sk);
	return false;
}
