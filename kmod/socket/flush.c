// SPDX-License-Identifier: GPL-2.0-only
/*
 * Flushing: sends what is due.
 *
 * Other code only notes what is due: a bit of rstream.want, bytes in the transmit queue,
 * rstream_out.due.  Each entry (a system call, a callback of TCP, the worker) flushes at its
 * end or before it sleeps.  Bytes of a stream on a ring are posted to it; everything else, and
 * all records, go through carrier_tcp.c.
 *
 * Socket held; never sleeps.
 */
#include <net/tcp.h>

#include "stream.h"

/* What keeps bytes from being sent, or, if @all_sent, more from being written? */
static enum rstream_reason what_stalls(const struct rstream *rs, bool all_sent)
{
	if (rs->txq.corked_at || rstream_tx_plain(rs))
		return RSTREAM_R_NONE;
	if (rs->tx.state < RSTREAM_ON_RING)
		return all_sent || rstream_tx_window(&rs->tx) ? RSTREAM_R_NONE :
								RSTREAM_R_STALL_WINDOW;
	if (all_sent)
		return rstream_txq_room(rs) ? RSTREAM_R_NONE : RSTREAM_R_STALL_RING;
	if (rs->txring && rstream_link_is_up(rs->txring->link))
		return rs->txring->stalled;
	return RSTREAM_R_NONE;
}

/* Looks at what is not sent yet, or not credited. */
static void look_at_rest(struct rstream *rs)
{
	bool all_sent = rs->tx.written == rs->tx.sent;
	enum rstream_reason why = what_stalls(rs, all_sent);

	if (why != rs->stats.stalls.why)
		rstream_stalled(rs, why);
	rstream_probe_later(rs, !all_sent && (why == RSTREAM_R_STALL_WINDOW ||
					      why == RSTREAM_R_STALL_RING));
}

/* What remains waits for earlier bytes: if these completed meanwhile, nobody else will look. */
static void flushed(struct rstream *rs)
{
	/* a full barrier: pairs with ring_sent() */
	if (xchg(&rs->out.flush, RSTREAM_FLUSH_IDLE) == RSTREAM_FLUSH_AGAIN &&
	    rs->tx.state == RSTREAM_ON_RING && rs->tx.written != rs->tx.sent)
		rstream_queue(rs, RSTREAM_DO_PUSH);
}

/* TCP has an error.  Return: must what is wanted wait for the program to fetch it? */
static bool error_stops(struct rstream *rs)
{
	struct sock *sk = rs->sk;

	/* no program will fetch the error; TCP's orphans continue, too */
	if (rstream_closed(rs) && sk->sk_state != TCP_CLOSE)
		sock_error(sk);
	if (!sk->sk_err)
		return false;
	/* an ICMP error with IP_RECVERR, for example: the program may continue after it */
	if (rs->out.waits == RSTREAM_OUT_CORKED)
		rs->out.waits = RSTREAM_OUT_READY;
	if ((rs->tx.written != rs->tx.sent || rs->want || rs->out.ctl_len || rs->out.rec_left) &&
	    sk->sk_state != TCP_CLOSE)
		rstream_retry(rs, RSTREAM_PATIENT_MS);
	return true;
}

/* Can anything be sent now?  If not, what is wanted is postponed or dropped. */
static bool may_flush(struct rstream *rs)
{
	struct sock *sk = rs->sk;
	bool open = (1 << sk->sk_state) & (TCPF_ESTABLISHED | TCPF_CLOSE_WAIT);

	if (rs->error || rstream_released(rs) || (unlikely(sk->sk_err) && error_stops(rs)))
		return false;
	/* TCP's FIN is out: nothing can be sent any more */
	if (!open && sk->sk_shutdown & SEND_SHUTDOWN)
		rs->want = 0;
	return open;
}

/* Is there nothing for TCP to send, neither new nor left over? */
static bool only_ring(const struct rstream *rs)
{
	return rs->tx.state == RSTREAM_ON_RING && !rs->want && !rs->out.ctl_len &&
	       !rs->out.rec_left && !rs->out.waits && !rs->tx.fin && !rs->zc.tcp;
}

void rstream_flush(struct rstream *rs)
{
	u64 mem = rs->txq.mem;
	bool ring;

	rstream_assert_held(rs);
	/* TCP's send may process the backlog: the flush in progress sends what becomes due there */
	if (rs->out.flush)
		return;
	rs->out.due = false;
	if (!may_flush(rs)) {
		rstream_ring_yield(rs);
		return;
	}
	WRITE_ONCE(rs->out.flush, RSTREAM_FLUSH_BUSY);
	rstream_probe_due(rs);
	ring = only_ring(rs);
	if (ring)
		rstream_ring_push(rs);
	if (!ring || rs->want)
		rstream_tcp_push(rs);
	flushed(rs);
	look_at_rest(rs);
	if (rstream_hist_on(rs) && rstream_hist_sent(rs))
		rstream_ring_waits(rs);
	if (rs->txq.mem < mem)
		rstream_txq_wake(rs);
}

void rstream_flush_due(struct rstream *rs)
{
	if (rs->mode != RSTREAM_FRAMED || (!rs->want && !rs->out.due))
		return;
	if (rstream_hello_waits(rs))
		rstream_hello_wait(rs);		/* to go together with data */
	else
		rstream_flush(rs);
}

void rstream_unlock(struct rstream *rs)
{
	rstream_flush_due(rs);
	release_sock(rs->sk);
}
