// SPDX-License-Identifier: GPL-2.0-only
/*
 * The transmit queue: what the program has written, until a carrier has taken it and the peer
 * has received it.  Send calls fill it (stream_send.c, stream_page.c).
 *
 * Socket held, except in functions that say how much room there is.
 */
#include <net/proto_memory.h>
#include <net/tcp.h>

#include "base/stats.h"
#include "stream.h"

/* ---- room ---- */

/*
 * How many bytes may be queued or unacknowledged.  On a ring, not just sk_sndbuf, because TCP's
 * autotuning sees none of its bytes.
 */
u64 rstream_txq_limit(const struct rstream *rs)
{
	u64 limit = READ_ONCE(rs->sk->sk_sndbuf), ring = 0;

	if (rs->tx.state >= RSTREAM_ON_RING)
		ring = min_t(u64, rs->taken.size, RSTREAM_RING_MAX);
	/* bytes in the ring are with the peer, whose program may not read before it has written */
	if (rs->sk->sk_userlocks & SOCK_SNDBUF_LOCK)
		return limit + ring;
	return max(limit, ring) + ring;
}

/*
 * Bytes not yet sent, which TCP_NOTSENT_LOWAT limits.  On the tcp carrier, some of them are in
 * TCP's queue.
 */
u64 rstream_txq_unsent(const struct rstream *rs)
{
	const struct tcp_sock *tp = tcp_sk(rs->sk);
	u64 queued = READ_ONCE(rs->tx.written) - READ_ONCE(rs->tx.sent);

	if (READ_ONCE(rs->tx.state) < RSTREAM_ON_RING)
		queued += READ_ONCE(tp->write_seq) - READ_ONCE(tp->snd_nxt);
	return queued;
}

/* Queued bytes with their overhead: a single byte may take a whole fragment. */
u64 rstream_txq_used(const struct rstream *rs)
{
	return READ_ONCE(rs->txq.mem) + READ_ONCE(rs->txq.cost) +
	       READ_ONCE(rs->sk->sk_wmem_queued);
}

/* As sk_stream_is_writeable(): a third must be free.  No room while memory is awaited. */
bool rstream_txq_room(const struct rstream *rs)
{
	u64 used = rstream_txq_used(rs);
	u64 limit = rstream_txq_limit(rs);

	return !READ_ONCE(rs->txq.scarce_until) && used < limit && limit - used >= used / 2 &&
	       rstream_txq_unsent(rs) * 2 < tcp_notsent_lowat(tcp_sk(rs->sk));
}

/* TCP is to call us when it has room: those who wait for room are still waiting. */
void rstream_txq_ask_tcp(struct rstream *rs)
{
	set_bit(SOCK_NOSPACE, &rs->sk->sk_socket->flags);
}

/*
 * A writer or poll() has found no room: TCP reports its own if SOCK_NOSPACE is set.  TCP's send
 * clears SOCKWQ_ASYNC_NOSPACE, and may call on_write_space() before it returns, so that SIGIO is
 * wanted is known here, too.
 */
void rstream_txq_ask_room(struct rstream *rs)
{
	rstream_txq_ask_tcp(rs);
	WRITE_ONCE(rs->txq.asked,
		   sock_flag(rs->sk, SOCK_FASYNC) ? RSTREAM_ROOM_SIGIO : RSTREAM_ROOM_ASKED);
}

/* A program writes: only if it finds no room again, SIGIO is wanted.  A sleeper is still woken. */
void rstream_txq_unask_sigio(struct rstream *rs)
{
	if (READ_ONCE(rs->txq.asked) == RSTREAM_ROOM_SIGIO)
		WRITE_ONCE(rs->txq.asked, RSTREAM_ROOM_ASKED);
}

/*
 * Wake writers as sk_stream_write_space() does: only if one has found no room, because any wake-up
 * is an event for edge-triggered epoll.
 */
void rstream_txq_wake(struct rstream *rs)
{
	struct sock *sk = rs->sk;
	struct socket_wq *wq;
	u8 asked;

	if (rs->txq.scarce_until && time_before(jiffies, rs->txq.scarce_until))
		rstream_retry_by(rs, rs->txq.scarce_until);
	else
		WRITE_ONCE(rs->txq.scarce_until, 0);
	if (!rstream_txq_room(rs) || !sk->sk_socket)
		return;
	/* if TCP has no room for us, either, keep the flag, so that it calls us */
	if (sk->sk_socket != rstream_dummy_socket && !rs->out.waits)
		clear_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
	/* pairs with rstream_poll(): it sees the room, or we see what it asked */
	smp_mb();
	asked = READ_ONCE(rs->txq.asked);
	if (asked == RSTREAM_ROOM_UNASKED)
		return;
	WRITE_ONCE(rs->txq.asked, RSTREAM_ROOM_UNASKED);
	rcu_read_lock();
	wq = rcu_dereference(sk->sk_wq);
	if (skwq_has_sleeper(wq))
		wake_up_interruptible_poll(&wq->wait, EPOLLOUT | EPOLLWRNORM |
					   EPOLLWRBAND);
	if (wq && wq->fasync_list && asked == RSTREAM_ROOM_SIGIO &&
	    !(rs->shutdown & SEND_SHUTDOWN))
		sock_wake_async(wq, SOCK_WAKE_IO, POLL_OUT);
	rcu_read_unlock();
}

/* ---- fragments ---- */

/* @n bytes, and frags that cost @cost, were passed to TCP, acknowledged or dropped. */
void rstream_txq_gone(struct rstream *rs, size_t n, size_t cost)
{
	rs->txq.mem -= n;
	rs->txq.cost -= cost;
	sk_mem_uncharge(rs->sk, n + cost);
}

void rstream_txq_drop(struct rstream *rs)
{
	struct rstream_frag *frag, *next;

	list_for_each_entry_safe(frag, next, &rs->txq.frags, list) {
		rstream_txq_gone(rs, frag->len, frag->charged);
		list_del(&frag->list);
		rstream_frag_free(frag);
	}
}

void rstream_txq_free(struct rstream *rs)
{
	rstream_txq_drop(rs);
	rstream_txq_gone(rs, rs->txq.mem, rs->txq.cost);
}

/* @n bytes were added to @frag, the last one of the queue.  Their charge was scheduled before. */
void rstream_txq_queued(struct rstream *rs, struct rstream_frag *frag, size_t n,
			enum rstream_mib_item how)
{
	size_t cost = frag->charged ? 0 : RSTREAM_FRAG_COST;

	if (cost)
		frag->charged = cost;
	rs->txq.mem += n;
	rs->txq.cost += cost;
	sk_mem_charge(rs->sk, n + cost);
	rs->tx.written += n;
	rstream_mib_add(rs->rn, how, n);
}

/*
 * How many of @n bytes, in at most @frags fragments, may be queued?  While little is queued
 * (tcp_wmem[0]), bytes may be queued even if no memory can be charged, as with TCP: a reader that
 * waits for just these bytes may hold the memory.  They are charged beyond what was scheduled, and
 * the excess is returned with them.
 *
 * Above its limits, the kernel still grants send memory to a socket beyond sk_sndbuf, which stops
 * the writer.  On a ring it would not, because sk_wmem_queued does not count the ring's bytes.  So
 * ask as for received data, which the kernel refuses.
 */
size_t rstream_txq_schedule(struct rstream *rs, size_t n, unsigned int frags)
{
	int size = n + frags * RSTREAM_FRAG_COST;
	struct sock *sk = rs->sk;
	int more = size - sk->sk_forward_alloc;
	bool may;
	s64 left;

	if (rs->tx.state < RSTREAM_ON_RING)
		may = sk_wmem_schedule(sk, size);
	else
		may = more <= 0 || __sk_mem_schedule(sk, more, SK_MEM_RECV);
	if (may)
		return n;
	left = READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_wmem[0]);
	left -= rstream_txq_used(rs);
	return clamp_t(s64, left, 0, n);
}

/* ---- cork ---- */

/* How long corked bytes are held back: as with TCP. */
#define CORK_MS	200

/*
 * MSG_MORE or TCP_CORK: less than a full segment waits for more, for a while.
 * @more: more will follow
 */
void rstream_txq_cork(struct rstream *rs, bool more)
{
	if (!more || rs->tx.written - rs->tx.sent >= tcp_sk(rs->sk)->mss_cache) {
		rs->txq.corked_at = 0;
		return;
	}
	if (!rs->txq.corked_at)
		rs->txq.corked_at = jiffies | 1;
	rstream_txq_cork_look(rs);
}

/* Uncork if bytes were held for long enough; otherwise, check again then. */
void rstream_txq_cork_look(struct rstream *rs)
{
	unsigned long end = rs->txq.corked_at + msecs_to_jiffies(CORK_MS);

	if (!rs->txq.corked_at)
		return;
	if (time_after_eq(jiffies, end))
		rs->txq.corked_at = 0;
	else
		rstream_retry_by(rs, end);
}

/* ---- autocorking ---- */

/* This many bytes are sent at once.  Fewer with a small SO_SNDBUF, which they must not fill. */
u64 rstream_txq_autocork_max(const struct rstream *rs)
{
	return min_t(u64, SZ_16K, rstream_txq_limit(rs) / 4);
}

/*
 * May @queued bytes wait for those in flight, in order to be sent together?  Urgent data and the
 * last bytes do not wait.
 */
bool rstream_txq_may_autocork(const struct rstream *rs, u64 queued)
{
	return queued < rstream_txq_autocork_max(rs) && rs->urg.sent <= rs->tx.sent &&
	       !(rs->shutdown & SEND_SHUTDOWN);
}

/* ---- the end ---- */

/* Have everything that the program wrote, and FIN, left our hands? */
bool rstream_txq_done(struct rstream *rs)
{
	if (!list_empty(&rs->txq.frags) || rs->out.ctl_len || rs->out.rec_left ||
	    rs->want || !rs->tx.fin)
		return false;
	if (!rs->txring)
		return true;
	/* no RESUME can come any more, so completed writes are all that we can wait for */
	if (rs->sk->sk_shutdown & RCV_SHUTDOWN)
		return rs->tx.state != RSTREAM_LOST &&
		       rstream_txring_sent(rs->txring);
	/* until they are credited, the ring's bytes may have to be sent again */
	return rs->tx.acked == rs->tx.sent ||
	       rstream_txring_acked(rs->txring) == (s64)rs->txring->written;
}
