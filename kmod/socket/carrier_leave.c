// SPDX-License-Identifier: GPL-2.0-only
/*
 * Leaving a ring: back to the tcp carrier when the ring's link is lost, when a
 * grant is refused, or when the receiver wants its memory back.
 *
 * Lost: the sender may be the first to notice, or the receiver, which then omits BROKEN:
 *
 *	sender				receiver
 *	  |--------- BROKEN(epoch) ------->|	its link is given up, too
 *	  |<-- RESUME(epoch, count), ACK --|	count: bytes that were in the ring
 *	  |	(takes frags back from the link, queues those beyond count again)
 *	  |----- SWITCH(offset, tcp) ----->|	the ring is no longer needed
 *	  |------------ DATA ------------->|	from that offset on
 *
 * The count is exact: nothing is counted any more once the link is BROKEN.  What the device
 * still writes is beyond the count, and is sent again.  The sender has all of it, because it
 * keeps frags until the receiver's software has credited them.
 *
 * Taken back: the receiver sends REVOKE(epoch); when everything is credited, the sender
 * sends SWITCH(tcp).  If the program has not read everything, the sender sends STOPPED(epoch)
 * first.  From then on the receiver moves the ring's bytes to its queue and credits them.  It does
 * not do so before STOPPED, because a sender that kept writing would fill the queue without limit.
 *
 * Nothing here sleeps.  rstream_leave_check() is called after each event: a link is lost or
 * dead (EV_LOST, EV_DEAD), a record names a ring, TCP has closed.  It acts on the
 * present state, whatever the event was.  Socket held.
 */
#include <net/tcp.h>

#include "base/stats.h"
#include "base/trace.h"
#include "stream.h"
#include "tcpq.h"

/* How often a stream that waits for its peer checks again, ms. */
#define TICK_MS		1000
/*
 * If its TCP works, a peer that owes RESUME, or the SWITCH that gives our memory back, and
 * does not send it, is broken itself.  After an outage, though, it may be silent until its
 * next retransmission.
 */
#define RESUME_TIMEOUT	(2 * TCP_RTO_MAX)

/* Note since when the peer owes an answer. */
static void peer_owes(struct rstream *rs)
{
	if (!rs->leave.owed_since)
		rs->leave.owed_since = jiffies | 1;
	rstream_timer_soon(rs, TICK_MS);
}

/* ---- receiving end ---- */

static void rx_drop(struct rstream *rs)
{
	rstream_ring_drop(rs);
	rs->granted.link = 0;
	rs->granted.size = 0;
	rs->granted.rec.type = 0;
	rs->granted.landed = 0;	/* there are no more callbacks for this ring */
}

/* The ring's next @n bytes have been copied to rxq. */
static void ring_moved(struct rstream *rs, u64 n)
{
	rs->stats.rx.ring_bytes += n;
	WRITE_ONCE(rs->granted.moved, rs->rx.base + rstream_rxq_ring_at(rs) + n);
	/* lockless readers must not count them twice: pairs with rstream_rxq_ready() */
	smp_store_release(&rs->rxq.bytes, rs->rxq.bytes + n);
	if (n)
		rstream_rxq_wake(rs);	/* between the two writes, it saw too few */
}

/*
 * Move what the program has not read from the ring to rxq.
 * Return: false if there was no memory for some of it.
 */
bool rstream_leave_move(struct rstream *rs)
{
	struct rstream_rxring *ring = rs->rxring;
	u64 from = rstream_rxq_ring_at(rs);
	u64 to = rs->rx.arrived - rs->rx.base, n;

	/* the program has read bytes that were refused later: the connection is being reset */
	if (from > to)
		return true;
	n = rstream_rxq_save(rs, ring->mem, ring->size, from, to, false);
	ring_moved(rs, n);
	return from + n == to;
}

/*
 * Move the ring's next @n bytes to rxq, or as many as there is memory for.  They are credited
 * when the program reads them.
 */
void rstream_leave_keep(struct rstream *rs, u64 n)
{
	u64 from = rstream_rxq_ring_at(rs);

	if (n)
		ring_moved(rs, rstream_rxq_save(rs, rs->rxring->mem, rs->rxring->size,
						from, from + n, true));
}

/* Empty and release the ring.  Return: false without memory; records then wait for a retry. */
bool rstream_leave_ring(struct rstream *rs)
{
	if (!rstream_leave_move(rs))
		return false;
	rstream_rx_left(&rs->rx);
	rx_drop(rs);
	rstream_queue(rs, RSTREAM_DO_GRANT);
	return true;
}

/* Grant another ring, now or after a pause. */
static void grant_next(struct rstream *rs, bool refused, bool lost)
{
	if (rs->rx.fin)
		return;
	if (refused && !lost) {
		rstream_ring_impossible(rs, RSTREAM_R_GRANT_REFUSED);
		rstream_ring_grant_later(rs);
		return;
	}
	rs->granted.refused = 0;
	rstream_queue(rs, RSTREAM_DO_GRANT);
}

/* The sender is back on tcp or, if @refused, has never left it. */
static void rx_left(struct rstream *rs, bool refused)
{
	if (refused) {
		rstream_mib_inc(rs->rn, RSTREAM_MIB_GRANTS_REFUSED_TX);
		trace_rstream_refuse(rs->sk, RSTREAM_DIR_RX, rs->rx.epoch,
				     rs->rx.arrived, RSTREAM_R_GRANT_REFUSED);
		/*
		 * SWITCH to tcp proves nothing: only DONE on the link returns the memory.  TCP's
		 * FIN ends also a grant that has not been sent.
		 */
		clear_bit(RSTREAM_WANT_GRANT, &rs->want);
		rx_drop(rs);
	} else {
		rstream_leave_ring(rs);
	}
	set_bit(RSTREAM_WANT_ACK, &rs->want);	/* tcp's window counts again */
}

enum rstream_reason rstream_leave_switch_got(struct rstream *rs, u64 offset)
{
	bool refused = rs->rx.state == RSTREAM_GRANTED;
	bool lost = rs->rx.state == RSTREAM_LOST, revoked = rs->rx.recall != RSTREAM_KEPT;
	enum rstream_reason reason;

	if (!rs->rxring)
		return RSTREAM_R_BAD_SWITCH;
	rstream_ring_landed(rs);
	lost |= !rstream_link_is_up(rs->rxring->link);
	revoked &= !lost;
	reason = rstream_rx_switch(&rs->rx, offset, 0);
	if (reason)
		return reason;
	if (!refused)
		rstream_switched(rs, RSTREAM_DIR_RX, RSTREAM_INFO_CARRIER_TCP, offset,
				 revoked ? rs->leave.revoked_for :
					   rstream_link_reason(rs->rxring->link));
	/* the sender has not waited for them */
	clear_bit(RSTREAM_WANT_RESUME, &rs->want);
	clear_bit(RSTREAM_WANT_REVOKE, &rs->want);
	rx_left(rs, refused);
	if (revoked && rs->leave.revoked_for)
		rstream_ring_impossible(rs, rs->leave.revoked_for);
	else
		grant_next(rs, refused && !revoked, lost);
	rstream_rxq_wake(rs);
	return RSTREAM_R_NONE;
}

enum rstream_reason rstream_leave_stopped_got(struct rstream *rs, u32 epoch)
{
	u64 most = rs->rxring ? rs->granted.credited + rs->rxring->size : 0;
	enum rstream_reason reason = rstream_rx_stopped(&rs->rx, epoch, most);

	if (!reason)
		rstream_ring_answer(rs);
	return reason;
}

/* Withdraw a GRANT that has not been sent, and perhaps never can: no answer is needed. */
static bool grant_withdraw(struct rstream *rs)
{
	if (rstream_grant_sent(&rs->granted))
		return false;
	clear_bit(RSTREAM_WANT_GRANT, &rs->want);
	rstream_rx_ungrant(&rs->rx);
	rx_drop(rs);
	return true;
}

/*
 * Take the ring back.  @why: RING_IDLE; NONE: to grant another one instead, or because the
 * program closes, which after FIN is not needed.  After TCP's FIN, nobody would answer.
 */
void rstream_leave_revoke(struct rstream *rs, enum rstream_reason why)
{
	if (!rs->rxring || (rs->rx.fin && why != RSTREAM_R_RING_IDLE) ||
	    rs->sk->sk_shutdown & RCV_SHUTDOWN)
		return;
	if (grant_withdraw(rs)) {
		rstream_ring_impossible(rs, why);
		return;
	}
	if (!rstream_rx_revoke(&rs->rx))
		return;
	rs->leave.revoked_for = why;
	rs->leave.idle_msgs = 0;
	set_bit(RSTREAM_WANT_REVOKE, &rs->want);
	rstream_mib_inc(rs->rn, RSTREAM_MIB_REVOKES_TX);
	peer_owes(rs);
	rstream_ring_answer(rs);
}

/*
 * The program may keep the socket for long: drop the ring if everything is read and nothing can
 * come any more, because the sender has left it and TCP, or TCP is closed.
 * Return: false if not.
 */
bool rstream_leave_over(struct rstream *rs)
{
	const struct sock *sk = rs->sk;

	rstream_ring_landed(rs);
	if (rs->rx.arrived != rs->rx.consumed || !(sk->sk_shutdown & RCV_SHUTDOWN) ||
	    rstream_tcpq_unread(sk) || rstream_rxq_ring_owes(rs) ||
	    (sk->sk_state != TCP_CLOSE && !rstream_rxring_left(rs->rxring)))
		return false;
	clear_bit(RSTREAM_WANT_GRANT, &rs->want);
	clear_bit(RSTREAM_WANT_REVOKE, &rs->want);
	clear_bit(RSTREAM_WANT_RESUME, &rs->want);
	rstream_rx_over(&rs->rx);
	rx_drop(rs);
	return true;
}

static void rx_check(struct rstream *rs)
{
	struct rstream_rxring *ring;

	if (rs->rx.state == RSTREAM_LEAVING && !rstream_leave_ring(rs))
		rstream_retry(rs, RSTREAM_RETRY_MS);
	if (rs->rx.recall != RSTREAM_KEPT)
		rstream_ring_answer(rs);

	ring = rs->rxring;
	if (!ring || rs->rx.state == RSTREAM_LEAVING || rs->rx.state == RSTREAM_LOST ||
	    rstream_link_is_up(ring->link))
		return;
	rstream_ring_impossible(rs, rstream_link_reason(ring->link));
	if (grant_withdraw(rs)) {
		rstream_queue(rs, RSTREAM_DO_GRANT);
		return;
	}
	/* wait for SWITCH, which proves that it was our peer that wrote into the ring */
	if (rs->rx.state == RSTREAM_GRANTED) {
		peer_owes(rs);
		return;
	}
	clear_bit(RSTREAM_WANT_REVOKE, &rs->want);
	rstream_ring_landed(rs);
	/* pairs with rstream_rxring_data() */
	rstream_rx_lost(&rs->rx, smp_load_acquire(&ring->landed));
	set_bit(RSTREAM_WANT_RESUME, &rs->want);
	set_bit(RSTREAM_WANT_ACK, &rs->want);
	peer_owes(rs);
	rstream_rxq_wake(rs);	/* perhaps no further bytes will arrive */
}

enum rstream_reason rstream_leave_broken_got(struct rstream *rs, u32 epoch)
{
	/* before SWITCH has proved its identity, the peer may not end the link */
	if (epoch != rs->rx.epoch || rs->rx.state == RSTREAM_GRANTED)
		return RSTREAM_R_BAD_RESUME;
	if (!rs->rxring || rs->rx.state != RSTREAM_ON_RING)
		return RSTREAM_R_NONE;	/* it has crossed our RESUME */
	rstream_link_break(rs->rxring->link, RSTREAM_END_PEER_BROKEN);
	rx_check(rs);
	return RSTREAM_R_NONE;
}

/* ---- sending end ---- */

static void tx_drop(struct rstream *rs)
{
	struct rstream_txring *ring = rs->txring;

	rs->txring = NULL;
	rs->txq.reap_at = 0;
	rs->taken.link = 0;
	rs->taken.size = 0;
	WRITE_ONCE(rs->taken.asked, false);
	rstream_txring_close(ring);
}

static void tx_close_ring(struct rstream *rs)
{
	tx_drop(rs);
	clear_bit(RSTREAM_WANT_BROKEN, &rs->want);
	set_bit(RSTREAM_WANT_SWITCH, &rs->want);
}

/* All that was written to the ring is credited, and TCP's FIN is out, after which no SWITCH is. */
void rstream_leave_sent(struct rstream *rs)
{
	if (!rs->txring)
		return;
	rstream_ring_reap(rs);	/* the link has frags whose writes have not completed */
	tx_drop(rs);
}

/* The grant can't be used: tell the peer, by SWITCH to tcp. */
void rstream_leave_refuse(struct rstream *rs, enum rstream_reason reason)
{
	rstream_mib_inc(rs->rn, RSTREAM_MIB_GRANTS_REFUSED_RX);
	if (reason)
		rstream_mib_reason(rs->rn, reason);
	trace_rstream_refuse(rs->sk, RSTREAM_DIR_TX, rs->tx.epoch, rs->tx.sent,
			     reason);
	rstream_tx_refuse(&rs->tx);
	if (rs->txring)
		tx_close_ring(rs);
	else
		set_bit(RSTREAM_WANT_SWITCH, &rs->want);
}

/* Drop the ring's first @count bytes from @frags. Return: bytes that remain. */
static u64 trim(struct rstream *rs, struct list_head *frags, u64 count)
{
	struct rstream_frag *frag, *next;
	u64 left = 0;

	list_for_each_entry_safe(frag, next, frags, list) {
		u32 gone = 0;

		if (frag->end <= count)
			gone = frag->len;
		else if (frag->end - frag->len < count)
			gone = count - (frag->end - frag->len);
		frag->off += gone;
		frag->len -= gone;
		left += frag->len;
		rstream_txq_gone(rs, gone, frag->len ? 0 : frag->charged);
		if (!frag->len) {
			list_del(&frag->list);
			rstream_frag_free(frag);
		}
	}
	return left;
}

static void tx_rewind(struct rstream *rs)
{
	u64 count = rs->tx.resume_at - rs->tx.base, again;
	LIST_HEAD(frags);

	if (rstream_txring_recall(rs->txring, &frags) < 0)
		return;		/* EV_DEAD follows */
	again = rstream_tx_rewind(&rs->tx);
	if (trim(rs, &frags, count) != again)	/* the peer has credited more than @count */
		rstream_fail(rs, RSTREAM_R_BAD_RESUME, ECONNRESET);
	list_splice(&frags, &rs->txq.frags);
	tx_close_ring(rs);
	rstream_mib_inc(rs->rn, RSTREAM_MIB_RESUMES);
	rstream_mib_add(rs->rn, RSTREAM_MIB_RESENT_BYTES, again);
	rstream_txq_wake(rs);
}

/*
 * TCP's FIN has arrived.  The peer sends it after all of our stream, up to our FIN, has arrived; or
 * earlier, if its program has closed.  A RESUME may still wait for memory, before it.
 */
static void tx_unanswered(struct rstream *rs)
{
	if (!rs->tx.fin && rs->tx.acked != rs->tx.sent) {
		rstream_fail(rs, RSTREAM_R_LINK_LOST, ECONNRESET);
		return;
	}
	rstream_tx_unanswered(&rs->tx);
	tx_rewind(rs);
}

/*
 * Has the link given back all frags?  They are credited, but bytes that follow on TCP must
 * not complete before they have.
 */
static bool tx_reaped(struct rstream *rs)
{
	rstream_ring_reap(rs);
	if (rs->txq.mem == rs->tx.written - rs->tx.sent)
		return true;
	if (!rstream_txring_sent(rs->txring))
		return false;		/* ring_space() will tell */
	rstream_ring_reap(rs);
	if (rs->txq.mem == rs->tx.written - rs->tx.sent)
		return true;
	rstream_retry(rs, RSTREAM_RETRY_MS);
	return false;
}

/* Leave the ring if all is credited; otherwise ask for a credit that interrupts. */
static void tx_leave(struct rstream *rs)
{
	s64 acked;

	rstream_ring_reap(rs);
	acked = rstream_txring_acked(rs->txring);
	if (acked < 0)
		rstream_fail(rs, RSTREAM_R_BAD_CREDIT, ECONNRESET);
	else if (rs->tx.base + acked == rs->tx.sent && !tx_reaped(rs))
		return;
	else if (rstream_tx_left(&rs->tx, acked))
		tx_close_ring(rs);
	else
		rstream_ring_waits(rs);
}

enum rstream_reason rstream_leave_revoke_got(struct rstream *rs, u32 epoch)
{
	enum rstream_reason reason = rstream_tx_revoke(&rs->tx, epoch);

	if (reason || !rs->txring)
		return reason;
	rstream_mib_inc(rs->rn, RSTREAM_MIB_REVOKES_RX);
	rs->leave.tx_why = RSTREAM_R_RING_REVOKED;
	if (rs->tx.state == RSTREAM_GRANTED)
		rstream_leave_refuse(rs, RSTREAM_R_RING_REVOKED);
	else if (rs->tx.state == RSTREAM_LEAVING)
		tx_leave(rs);
	/* perhaps not everything has been read: after STOPPED the peer credits it all the same */
	if (rs->tx.state == RSTREAM_LEAVING)
		set_bit(RSTREAM_WANT_STOPPED, &rs->want);
	return RSTREAM_R_NONE;
}

/*
 * TCP is closed: nothing can be sent or requested any more.  MSG_ZEROCOPY completes; for bytes
 * in flight on a ring, as soon as that is drained.
 */
static void tx_over(struct rstream *rs)
{
	rstream_txq_drop(rs);
	if (!rs->txring || rs->tx.state < RSTREAM_ON_RING)
		return;
	rstream_ring_reap(rs);
	rs->leave.lost = rstream_txring_sent(rs->txring) ? 0 : rs->txq.mem;
	rstream_tx_lost(&rs->tx);
	rstream_tx_unanswered(&rs->tx);
	rstream_tx_rewind(&rs->tx);
	tx_close_ring(rs);
	rstream_txq_free(rs);
}

static void tx_check(struct rstream *rs)
{
	if (!rs->txring)
		return;
	if (!rstream_link_is_up(rs->txring->link)) {
		if (rs->tx.state == RSTREAM_GRANTED) {
			rstream_leave_refuse(rs, rstream_link_reason(rs->txring->link));
			return;
		}
		rstream_ring_reap(rs);
		if (rs->tx.state != RSTREAM_LOST) {
			if (rstream_tx_lost(&rs->tx))
				set_bit(RSTREAM_WANT_BROKEN, &rs->want);
			rs->leave.tx_why = rstream_link_reason(rs->txring->link);
			rstream_ring_impossible(rs, rs->leave.tx_why);
			peer_owes(rs);
		}
	}
	if (rs->tx.state == RSTREAM_LEAVING)
		tx_leave(rs);
	if (rs->tx.state != RSTREAM_LOST)
		return;
	if (rs->tx.resume == RSTREAM_RESUMED)
		tx_rewind(rs);
	else if (rs->sk->sk_shutdown & RCV_SHUTDOWN)
		tx_unanswered(rs);
}

enum rstream_reason rstream_leave_resume_got(struct rstream *rs, u32 epoch, u64 count)
{
	enum rstream_reason reason;

	rstream_ring_reap(rs);	/* first take in the last credits */
	reason = rstream_tx_resume(&rs->tx, epoch, count);
	if (reason || !rs->txring)
		return reason;
	trace_rstream_resume(rs->sk, RSTREAM_DIR_TX, epoch, rs->tx.base + count,
			     RSTREAM_R_NONE);
	/* the peer has given up its end, so ours is of no use */
	rstream_link_break(rs->txring->link, RSTREAM_END_PEER_RESUMES);
	tx_check(rs);
	return RSTREAM_R_NONE;
}

/* ---- both ---- */

/* Has the link of our ring ended, and is its memory still used? */
static bool has_dead_memory(const struct rstream *rs)
{
	return rs->rxring && rstream_link_is_dead(rs->rxring->link) && !rs->rxring->kept;
}

/*
 * SWITCH may be stuck behind unread data, or never come: don't keep memory of a link for it.
 * Return: false to try again later.
 */
bool rstream_leave_save(struct rstream *rs)
{
	if (!has_dead_memory(rs) || rstream_leave_over(rs))
		return true;
	rstream_rxring_keep(rs->rxring);
	return !has_dead_memory(rs);
}

/* Are the links of our rings still there? */
void rstream_leave_check(struct rstream *rs)
{
	bool over = rs->sk->sk_state == TCP_CLOSE;

	rstream_assert_held(rs);
	if (rs->mode != RSTREAM_FRAMED)
		return;
	/* a flush in progress is using the frags */
	if (over && !rs->out.flush)
		tx_over(rs);
	/* the program may keep the socket for long, although nothing comes any more */
	if (has_dead_memory(rs))
		rstream_timer_soon(rs, TICK_MS);
	if (rs->error)
		return;
	rx_check(rs);
	if (!over)
		tx_check(rs);
}

static bool owes_resume(const struct rstream *rs)
{
	return rs->tx.state == RSTREAM_LOST && rs->tx.resume != RSTREAM_RESUMED;
}

static bool owes_switch(const struct rstream *rs)
{
	/* nothing arrives after TCP's FIN */
	if (!rs->rxring || rs->sk->sk_shutdown & RCV_SHUTDOWN)
		return false;
	return rs->rx.state == RSTREAM_LOST || rs->rx.recall != RSTREAM_KEPT ||
	       (rs->rx.state == RSTREAM_GRANTED &&
		!rstream_link_is_up(rs->rxring->link));
}

/* Does the peer wait for this end, which has no memory for what the ring still holds? */
static bool is_scarce(const struct rstream *rs)
{
	return rs->rxring && rs->rx.state == RSTREAM_ON_RING &&
	       rs->rx.recall == RSTREAM_STOPPED &&
	       rstream_rxq_ring_at(rs) < rs->rx.arrived - rs->rx.base;
}

/* Has TCP delivered what the peer has to answer?  Until then, TCP's own timeouts apply. */
static bool is_delivered(const struct rstream *rs)
{
	return tcp_sk(rs->sk)->bytes_acked >= rs->out.asked_end &&
	       !(rs->want & (BIT(RSTREAM_WANT_BROKEN) | BIT(RSTREAM_WANT_RESUME) |
			     BIT(RSTREAM_WANT_REVOKE) | BIT(RSTREAM_WANT_GRANT)));
}

/* Timer of a stream after both HELLOs have been exchanged. */
void rstream_leave_tick(struct rstream *rs)
{
	if (!rstream_leave_save(rs))
		rstream_timer_soon(rs, TICK_MS);
	if (rs->sk->sk_state == TCP_CLOSE)
		return;
	if (!owes_resume(rs) && !owes_switch(rs)) {
		rs->leave.owed_since = 0;
	} else {
		if (!rs->leave.owed_since || !is_delivered(rs) || is_scarce(rs) ||
		    rstream_plain_recv_paused(rs))
			rs->leave.owed_since = jiffies | 1;
		if (time_after(jiffies, rs->leave.owed_since + RESUME_TIMEOUT)) {
			rstream_fail(rs, RSTREAM_R_LINK_LOST, ETIMEDOUT);
			return;
		}
		rstream_timer_soon(rs, TICK_MS);
	}
	rstream_ring_look_again(rs);
	rstream_ring_grant_try(rs);
}
