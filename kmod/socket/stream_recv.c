// SPDX-License-Identifier: GPL-2.0-only
/*
 * To the program: receive calls on a connection with records.
 *
 * They read the queue of skbs from the tcp carrier first, and after it what has landed in the
 * ring, once the peer has switched.
 */
#include <linux/sched/signal.h>
#include <net/busy_poll.h>
#include <net/rps.h>
#include <net/tcp.h>

#include "base/stats.h"
#include "af_rdmastream.h"
#include "stream.h"

/* ---- copying out ---- */

/* @skip: unread bytes before the first one to copy (MSG_PEEK). */
static int copy_queue(struct rstream *rs, struct msghdr *msg, size_t len,
		      u64 skip, bool trunc)
{
	struct sk_buff *skb;

	skb_queue_walk(&rs->rxq.skbs, skb) {
		struct rstream_skb_cb *cb = rstream_skb_cb(skb);
		size_t n;

		if (skip >= cb->len) {
			skip -= cb->len;
			continue;
		}
		n = min_t(size_t, len, cb->len - skip);
		if (!trunc && skb_copy_datagram_msg(skb, cb->off + skip, msg, n))
			return -EFAULT;
		return n;
	}
	return 0;
}

static int copy_ring(struct rstream *rs, struct msghdr *msg, size_t len,
		     u64 skip, bool trunc)
{
	const struct rstream_rxring *ring = rs->rxring;
	u64 at = rstream_rxq_ring_at(rs) + skip;
	u32 pos = at & (ring->size - 1);
	size_t n = min3(len, (size_t)(ring->size - pos),
			(size_t)(rstream_rxq_ring_ready(rs) - skip)), got;

	if (trunc || !n)
		return n;
	/* by page, because hardened usercopy would look up the vmap area each time */
	if (n <= PAGE_SIZE - offset_in_page(pos))
		got = copy_page_to_iter(rstream_rxring_page(ring, at), offset_in_page(pos),
					n, &msg->msg_iter);
	else
		got = copy_to_iter(ring->mem + pos, n, &msg->msg_iter);
	if (got < n) {		/* all or nothing, as TCP */
		iov_iter_revert(&msg->msg_iter, got);
		return -EFAULT;
	}
	return n;
}

int rstream_recv_copy(struct rstream *rs, struct msghdr *msg, size_t len,
		      u64 skip, bool trunc)
{
	if (skip < rs->rxq.bytes)
		return copy_queue(rs, msg, len, skip, trunc);
	return copy_ring(rs, msg, len, skip - rs->rxq.bytes, trunc);
}

/* The program has read, or skipped, the next @len bytes. */
void rstream_recv_consume(struct rstream *rs, size_t len)
{
	size_t from_queue = min_t(u64, len, rs->rxq.bytes), left = from_queue;
	struct sk_buff *skb;

	while (left) {
		struct rstream_skb_cb *cb;
		u32 n;

		skb = skb_peek(&rs->rxq.skbs);
		cb = rstream_skb_cb(skb);
		n = min_t(size_t, left, cb->len);
		cb->off += n;
		cb->len -= n;
		left -= n;
		if (!cb->len)
			rstream_rxq_drop(rs, skb);
	}
	WRITE_ONCE(rs->rx.consumed, rs->rx.consumed + len);
	/* pairs with rstream_rxq_ready(): poll() may count bytes twice, but never misses any */
	smp_store_release(&rs->rxq.bytes, rs->rxq.bytes - from_queue);
	if (rs->urg.state && rs->rx.consumed > rs->urg.at)
		WRITE_ONCE(rs->urg.state, RSTREAM_URG_NONE);
	/* bytes moved to the queue when they were peeked at still have to be credited */
	if (len > from_queue || (rs->rxring && rs->granted.moved > rs->rx.base))
		rstream_ring_read(rs, len - from_queue);
	if (rs->hist || rstream_hist_on(rs))
		rstream_hist_read(rs);
}

static void window_grow(struct rstream *rs)
{
	u64 most = rstream_rxq_window_most(rs);

	if (rs->rxq.window < most && !tcp_under_memory_pressure(rs->sk))
		WRITE_ONCE(rs->rxq.window, min(2 * rs->rxq.window, most));
}

/* Has TCP sent nothing for a while? */
static bool is_quiet(const struct rstream *rs)
{
	return tcp_jiffies32 - tcp_sk(rs->sk)->lsndtime >= 10 * HZ;
}

/*
 * Send the peer a new window when half of it is used.  With a slow reader that takes long, so
 * send a smaller update now and then: a closed sender that sees no progress gives up.
 */
void rstream_recv_ack(struct rstream *rs)
{
	u64 used;

	if (rs->mode != RSTREAM_FRAMED ||
	    (rstream_tx_plain(rs) && rstream_plain_recv_in_tcp(rs)))
		return;			/* disconnected while we slept, or TCP does it all */
	if (!rstream_all_records(rs))
		rstream_plain_recv_more(rs);
	if (rs->in.left == RSTREAM_LEFT_SCARCE || rs->plain_rx.part_is_data)
		rstream_parse(rs);
	/*
	 * TCP closes its window if it has no memory for a packet, and opens it again when its
	 * queue is read.  But we may have emptied that before.
	 */
	if (rs->in.left != RSTREAM_LEFT_SCARCE && !tcp_receive_window(tcp_sk(rs->sk)) &&
	    !(rs->sk->sk_shutdown & RCV_SHUTDOWN))
		rstream_tcp_ack(rs->sk);
	if (rs->granted.full && rs->rxq.bytes <= rs->rxq.window)
		rstream_queue(rs, RSTREAM_DO_GRANT);
	if (rstream_tx_plain(rs) || rs->plain.phase.rx == RSTREAM_SPAN)
		return;			/* the window is TCP's */
	if (rs->rx.fin && rs->tx.fin)
		rs->out.due = true;	/* the flush may close TCP now */
	if (rstream_rx_on_ring(&rs->rx) || rstream_rxq_ring_ended(rs))
		return;
	used = rs->rx.consumed + rs->rxq.window - rs->rx.limit;
	if (!used || test_bit(RSTREAM_WANT_ACK, &rs->want) ||
	    (used < rs->rxq.window / 2 && !is_quiet(rs)))
		return;
	if (used >= rs->rxq.window / 2)
		window_grow(rs);
	set_bit(RSTREAM_WANT_ACK, &rs->want);
}

/* ---- waiting ---- */

static bool undecided(const struct rstream *rs)
{
	u8 mode = READ_ONCE(rs->mode);

	return mode == RSTREAM_ASKED || mode == RSTREAM_GUARDED;
}

/* There is nothing to read.  Return: 0 at the end of the stream or to continue, or an errno. */
int rstream_recv_status(struct rstream *rs, bool *eof)
{
	struct sock *sk = rs->sk;

	*eof = rstream_rx_eof(&rs->rx);
	if (*eof)
		return 0;
	if (sk->sk_err)
		return sock_error(sk);
	*eof = rs->shutdown & RCV_SHUTDOWN;
	if (*eof)
		return 0;
	if (sk->sk_state == TCP_CLOSE && !rstream_rxq_ring_owes(rs)) {
		/* the error has been reported before: as with TCP, end of file */
		*eof = sk->sk_shutdown & RCV_SHUTDOWN;
		return *eof ? 0 : -ENOTCONN;
	}
	return 0;
}

/* How many bytes are here.  Only a peek sees what is behind the end of a span in TCP's queue. */
static u64 bytes_here(const struct rstream *rs, bool peek)
{
	return peek && READ_ONCE(rs->plain_rx.in_tcp) ? rstream_rxq_here(rs) :
							rstream_rxq_ready(rs);
}

bool rstream_recv_take_plain(struct rstream *rs)
{
	rstream_plain_recv_refill(rs, 0);
	return rstream_plain_recv_pull(rs, 0);
}

/* Likewise after the urgent byte, which is skipped: the queue may have had nothing else. */
static bool skip_urgent(struct rstream *rs)
{
	rstream_recv_consume(rs, 1);
	return rstream_recv_take_plain(rs);
}

int rstream_recv_wait(struct rstream *rs, long *timeo, u64 more_than, bool peek)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	struct sock *sk = rs->sk;
	int err;

	if (!*timeo)
		return -EAGAIN;
	if (rs->want || rs->out.due)
		rstream_flush(rs);	/* even HELLO: the program won't send bytes to go with it */
	if (signal_pending(current))
		return sock_intr_errno(*timeo);
	add_wait_queue(sk_sleep(sk), &wait);
	smp_mb();	/* pairs with ring_data(), which does not hold the lock */
	err = sk_wait_event(sk, timeo, bytes_here(rs, peek) > more_than ||
			    rstream_rxq_over(rs), &wait);
	remove_wait_queue(sk_sleep(sk), &wait);
	return min(err, 0);
}

/*
 * accept() has charged the socket, and passes it to the program.  Called by whoever notices first,
 * accept() or the worker, and perhaps by both.
 */
void rstream_recv_accepted(struct rstream *rs)
{
	struct sock *sk = rs->sk;

	if (rs->accepted)
		return;
	atomic_sub(rs->rxq.mem, &sk->sk_rmem_alloc);
	WRITE_ONCE(rs->accepted, true);
	/* TCP has room again; any record carries its new window */
	if (rs->mode == RSTREAM_FRAMED && rs->hello.in &&
	    rs->rxq.mem >= READ_ONCE(sk->sk_rcvbuf) / 2)
		set_bit(RSTREAM_WANT_ACK, &rs->want);
}

/* ---- receive calls ---- */

/* When the last of these @len bytes arrived; 0: not known. */
static ktime_t stamp_of(const struct rstream *rs, u64 skip, size_t len)
{
	u64 last = skip + len - 1;
	struct sk_buff *skb;

	skb_queue_walk(&rs->rxq.skbs, skb) {
		if (last < rstream_skb_cb(skb)->len)
			return rstream_skb_cb(skb)->stamp;
		last -= rstream_skb_cb(skb)->len;
	}
	return rs->granted.stamp;
}

/*
 * How much a read of @len bytes may take, beginning *@ahead bytes after rx.consumed: it ends at
 * the urgent byte.  If it begins there, that byte is skipped.
 */
size_t rstream_recv_next(struct rstream *rs, size_t len, u64 *ahead, bool peek)
{
	u64 at = rs->rx.consumed + *ahead;

	if (rstream_rxq_at_mark(rs, at) && bytes_here(rs, peek) > *ahead &&
	    !sock_flag(rs->sk, SOCK_URGINLINE)) {
		if (peek)
			++*ahead;
		else if (!skip_urgent(rs))
			return 0;
		at++;
	}
	if (bytes_here(rs, peek) <= *ahead)
		return 0;
	if (rs->urg.state && rs->urg.at > at)
		len = min_t(u64, len, rs->urg.at - at);
	return len;
}

/*
 * A program that has peeked at bytes must read the same bytes later.  The peer can still write
 * to the ring, so move bytes up to @ahead + @len from there to the queue.
 * Return: false if there was no memory for any of the @len.
 */
bool rstream_recv_seen(struct rstream *rs, u64 ahead, size_t len)
{
	if (ahead + len > rs->rxq.bytes)
		rstream_leave_keep(rs, min(ahead + len - rs->rxq.bytes,
					   rstream_rxq_ring_ready(rs)));
	return ahead < rs->rxq.bytes;
}

/*
 * Show the program what is here, at most @len bytes, beginning *@ahead bytes after rx.consumed.
 * Return: bytes, 0 if there are none, or a negative errno.
 */
static int peek_some(struct rstream *rs, struct msghdr *msg, size_t len,
		     u64 *ahead, bool trunc, ktime_t *stamp)
{
	int n;

	if (!rstream_all_records(rs))
		rstream_plain_recv_refill(rs, *ahead);
	len = rstream_recv_next(rs, len, ahead, true);
	if (!len)
		return 0;
	if (rs->plain_rx.in_tcp && *ahead >= rs->rxq.bytes) {
		n = rstream_plain_recv_peek(rs, trunc ? NULL : msg, len, *ahead - rs->rxq.bytes,
					    stamp);
		if (n <= 0)
			return n;
	} else {
		if (!trunc && !rstream_recv_seen(rs, *ahead, len))
			return rs->error ? 0 : -ENOMEM;
		n = rstream_recv_copy(rs, msg, len, *ahead, trunc);
		if (n <= 0)
			return n ?: -EFAULT;
		*stamp = stamp_of(rs, *ahead, n);
	}
	*ahead += n;
	sk_peek_offset_fwd(rs->sk, n);
	return n;
}

/* Will nothing ever come after the next @ahead bytes, all of which are here? */
static bool peek_ended(const struct rstream *rs, u64 ahead)
{
	return rs->rx.fin ? rs->rx.consumed + ahead >= rs->rx.fin_at : rstream_plain_recv_ends(rs);
}

/* Copy what is here, at most @len bytes.  Return: as peek_some() */
static int recv_some(struct rstream *rs, struct msghdr *msg, size_t len,
		     bool trunc, ktime_t *stamp)
{
	u64 ahead = 0;
	int n;

	if (!rs->plain_rx.in_tcp && !rs->rxq.bytes && rstream_plain_recv_in_tcp(rs))
		return 0;
	if (rs->plain_rx.in_tcp && !rs->rxq.bytes && !rs->urg.state && !rstream_rx_timed(rs) &&
	    !trunc) {
		n = rstream_plain_recv_copy(rs, msg, len);
		if (n > 0)
			sk_peek_offset_bwd(rs->sk, n);
		return n;
	}
	if ((rs->plain_rx.in_tcp || !rstream_all_records(rs)) && !rstream_recv_take_plain(rs))
		return -ENOMEM;
	len = rstream_recv_next(rs, len, &ahead, false);
	if (!len)
		return 0;
	n = rstream_recv_copy(rs, msg, len, 0, trunc);
	if (n <= 0)
		return n ?: -EFAULT;
	*stamp = stamp_of(rs, 0, n);
	rstream_recv_consume(rs, n);
	sk_peek_offset_bwd(rs->sk, n);
	return n;
}

/* Fast paths: a plain read, and all data is in one place. */
enum fast {
	NOT_FAST,
	FAST_TCP,	/* all data, if any, is in TCP's queue, without records */
	FAST_RING,	/* all data is in the ring */
};

static enum fast may_recv_fast(const struct rstream *rs, int flags)
{
	if (rs->rxq.bytes || rs->urg.state || rstream_rx_timed(rs) ||
	    flags & (MSG_PEEK | MSG_TRUNC))
		return NOT_FAST;
	if (rs->rxring && rs->rx.state == RSTREAM_ON_RING && !rs->plain_rx.in_tcp)
		return FAST_RING;
	return rstream_plain_recv_in_tcp(rs) ? FAST_TCP : NOT_FAST;
}

/* recv_some() for a fast case */
static int recv_fast(struct rstream *rs, struct msghdr *msg, size_t len, enum fast fast)
{
	int n;

	if (fast == FAST_TCP) {
		n = rs->plain_rx.in_tcp ? rstream_plain_recv_copy(rs, msg, len) : 0;
	} else {
		rstream_ring_landed(rs);
		n = copy_ring(rs, msg, len, 0, false);
		if (n > 0)
			rstream_recv_consume(rs, n);
	}
	if (n > 0)
		sk_peek_offset_bwd(rs->sk, n);
	return n;
}

/*
 * How many bytes the program has seen, when nothing was found behind the next @ahead.  That there
 * are more than these is a lie of the peer, which has repeated bytes of TCP with others.
 */
static u64 seen(const struct rstream *rs, u64 ahead, bool peek)
{
	return peek && rs->plain_rx.in_tcp ? max(ahead, rstream_rxq_here(rs)) : ahead;
}

static int recv_framed(struct rstream *rs, struct msghdr *msg, size_t len,
		       int flags, ktime_t *stamp)
{
	struct sock *sk = rs->sk;
	long timeo = sock_rcvtimeo(sk, flags & MSG_DONTWAIT);
	size_t target = sock_rcvlowat(sk, flags & MSG_WAITALL, len);
	u64 ahead = max(sk_peek_offset(sk, flags), 0);
	bool peek = flags & MSG_PEEK, eof;
	enum fast fast = NOT_FAST;
	size_t copied = 0;
	int n, err = 0;

	/* as with TCP, a read of no bytes waits for some */
	while (copied < len || (!len && bytes_here(rs, peek) <= ahead)) {
		fast = len ? may_recv_fast(rs, flags) : NOT_FAST;
		if (!fast)
			rstream_ring_landed(rs);
		if (!fast && rstream_rxq_at_mark(rs, rs->rx.consumed + ahead)) {
			if (copied)
				break;
			if (signal_pending(current)) {
				err = timeo ? sock_intr_errno(timeo) : -EAGAIN;
				break;
			}
		}
		if (fast)
			n = recv_fast(rs, msg, len - copied, fast);
		else if (peek)
			n = peek_some(rs, msg, len - copied, &ahead, flags & MSG_TRUNC, stamp);
		else
			n = recv_some(rs, msg, len - copied, flags & MSG_TRUNC, stamp);
		if (n > 0) {
			copied += n;
			rstream_flush_due(rs);	/* the call may take long */
			continue;
		}
		err = n;
		if (err || copied >= target || (peek && peek_ended(rs, ahead)))
			break;
		if (copied && (sk->sk_err || !timeo || signal_pending(current)))
			break;
		eof = false;
		if (rs->rx.fin || rs->shutdown & RCV_SHUTDOWN || sk->sk_err ||
		    sk->sk_state == TCP_CLOSE)
			err = rstream_recv_status(rs, &eof);
		if (err || eof)
			break;
		if (!peek && fast != FAST_TCP)
			rstream_recv_ack(rs);
		fast = NOT_FAST;
		if (peek && timeo)
			rstream_ring_looked(rs, true);
		err = rstream_recv_wait(rs, &timeo, seen(rs, ahead, peek), peek);
		if (err)
			break;
		if (peek && copied && rstream_rxq_over(rs))
			break;
	}
	if (peek && copied < len)
		rstream_ring_looked(rs, false);
	else if (!peek && fast != FAST_TCP)
		rstream_recv_ack(rs);
	return copied ?: err;
}

static bool deciding(const struct rstream *rs)
{
	return undecided(rs) && READ_ONCE(rs->sk->sk_state) != TCP_CLOSE &&
	       !READ_ONCE(rs->error) && !rstream_early_shut(rs->sk);
}

static bool connecting(const struct rstream *rs)
{
	return READ_ONCE(rs->mode) == RSTREAM_CONNECTING &&
	       (1 << READ_ONCE(rs->sk->sk_state)) & (TCPF_SYN_SENT | TCPF_SYN_RECV);
}

/*
 * Sleep while @busy().  Not with sk_stream_wait_connect(), which would make TCP delay the ACK of
 * the handshake.  Return: 0 or an errno.
 */
static int wait_while(struct rstream *rs, int flags, bool (*busy)(const struct rstream *rs))
{
	struct sock *sk = rs->sk;
	long timeo = sock_rcvtimeo(sk, flags & MSG_DONTWAIT);
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	int err = 0;

	add_wait_queue(sk_sleep(sk), &wait);
	while (busy(rs)) {
		err = sock_error(sk) ?: rstream_may_sleep(timeo);
		if (err)
			break;
		err = min(sk_wait_event(sk, &timeo, !busy(rs) || READ_ONCE(sk->sk_err),
					&wait), 0);
		if (err)
			break;
	}
	remove_wait_queue(sk_sleep(sk), &wait);
	return err;
}

/* Wait until the mode is decided.  Return: as recv_idle() */
static int wait_decision(struct rstream *rs, int flags)
{
	int err = wait_while(rs, flags, deciding);

	if (err || !undecided(rs))
		return err;
	if (rstream_early_shut(rs->sk))
		return sock_error(rs->sk) ?: 1;
	return sock_error(rs->sk) ?: rs->error ? -rs->error : -ENOTCONN;
}

/*
 * There is no connection: answer as TCP would.  We don't ask TCP, because another thread might
 * connect before TCP takes the lock, except if TCP would not wait in any case.
 * Return: an errno, 1 for end of file, 0 if TCP shall answer.
 */
static int recv_idle(struct rstream *rs, int flags)
{
	struct sock *sk = rs->sk;
	int err;

	if (sk->sk_state == TCP_LISTEN)
		return -ENOTCONN;
	if (sk->sk_state != TCP_CLOSE || tcp_sk(sk)->repair)
		return 0;
	if (flags & MSG_OOB)
		return -EINVAL;
	err = sock_error(sk);
	if (err)
		return err;
	return sk->sk_shutdown & RCV_SHUTDOWN ? 1 : -ENOTCONN;
}

/* Locked, but not FRAMED: wait until that is decided.  Return: as rstream_recv_begin() */
static int recv_undecided(struct rstream *rs, struct socket *sock, int flags)
{
	int err = 0;

	/* no urgent byte: as with TCP, this does not wait for a connection either */
	if (flags & MSG_OOB && (connecting(rs) || undecided(rs)) && !tcp_sk(rs->sk)->urg_data)
		err = -EINVAL;
	else if (connecting(rs))	/* we don't know yet whether the call is TCP's */
		err = wait_while(rs, flags, connecting);
	if (!err && (rs->mode == RSTREAM_IDLE || rs->mode == RSTREAM_CONNECTING))
		err = recv_idle(rs, flags);
	if (!err && undecided(rs))
		err = wait_decision(rs, flags);
	if (err > 0 || (!err && rs->mode == RSTREAM_FRAMED))
		return 1;
	rstream_swap_ops(rs, sock);
	release_sock(rs->sk);
	return err;
}

/*
 * Return: 1, with the socket locked, if the connection has records, or if there is none and the
 * answer is end of file; 0 if the call is TCP's; otherwise a negative errno.
 */
int rstream_recv_begin(struct rstream *rs, struct socket *sock, int flags)
{
	if (rstream_mode(rs) == RSTREAM_LISTEN || !rstream_lock_ours(rs, sock))
		return 0;
	if (rs->mode == RSTREAM_FRAMED)
		return 1;
	return recv_undecided(rs, sock, flags);
}

/* Not SOCK_TIMESTAMP, which is SIOCGSTAMP's: TCP never sets the time of the socket. */
static bool rx_time_told(const struct sock *sk)
{
	return sock_flag(sk, SOCK_RCVTSTAMP) ||
	       READ_ONCE(sk->sk_tsflags) & (SOF_TIMESTAMPING_RX_SOFTWARE |
					    SOF_TIMESTAMPING_SOFTWARE);
}

/* SO_TIMESTAMP and the like, from a dummy packet. */
static void tell_time(struct sock *sk, struct msghdr *msg, ktime_t stamp)
{
	struct sk_buff *skb = alloc_skb(0, GFP_KERNEL);

	if (!skb)
		return;
	skb->tstamp = stamp;
	sock_recv_timestamp(msg, sk, skb);
	consume_skb(skb);
}

/* Has TCP's FIN arrived, and before it nothing but spans that are still in TCP's queue? */
static bool ends_behind(const struct rstream *rs)
{
	return READ_ONCE(rs->in.left) == RSTREAM_LEFT_UNREAD &&
	       READ_ONCE(rs->sk->sk_shutdown) & RCV_SHUTDOWN &&
	       READ_ONCE(rs->plain.phase.rx) == RSTREAM_SPAN && !READ_ONCE(rs->plain_rx.other);
}

/* Has the end of the stream arrived, with all that precedes it? */
bool rstream_recv_end_here(const struct rstream *rs)
{
	return rstream_rxq_all_here(rs) || ends_behind(rs);
}

/* TCP_INQ, also for io_uring.  As with TCP, the end counts as a byte. */
static void tell_inq(struct rstream *rs, struct msghdr *msg)
{
	bool asked = tcp_sk(rs->sk)->recvmsg_inq;

	if (!asked && !msg->msg_get_inq)
		return;
	msg->msg_inq = min_t(u64, rstream_rxq_here(rs) + rstream_recv_end_here(rs), INT_MAX);
	if (asked)
		put_cmsg(msg, SOL_TCP, TCP_CM_INQ, sizeof(msg->msg_inq),
			 &msg->msg_inq);
}

#ifdef CONFIG_NET_RX_BUSY_POLL
/* Without the lock, so it is only a hint. */
static bool busy_loop_end(void *arg, unsigned long since)
{
	struct rstream *rs = arg;

	return rstream_rxq_ready(rs) || rstream_rxq_over(rs) ||
	       READ_ONCE(rs->rx.state) == RSTREAM_LOST ||
	       !skb_queue_empty_lockless(&rs->sk->sk_receive_queue) ||
	       sk_busy_loop_timeout(rs->sk, since);
}

/* Poll what delivers the next bytes: the link, even if TCP's ACKs arrive on a network device. */
static unsigned int busy_id(const struct rstream *rs)
{
	const struct rstream_rxring *ring;
	unsigned int id = READ_ONCE(rs->sk->sk_napi_id);

	rcu_read_lock();
	ring = READ_ONCE(rs->rxring);	/* freed by RCU */
	if (ring && READ_ONCE(rs->rx.state) == RSTREAM_ON_RING)
		id = ring->napi_id;
	rcu_read_unlock();
	return id;
}

/* SO_BUSY_POLL, as in TCP: before the call sleeps, or once if it is non-blocking. */
static void busy_loop(struct rstream *rs, int flags)
{
	const struct sock *sk = rs->sk;
	unsigned int id;

	if (sk->sk_state != TCP_ESTABLISHED ||
	    rstream_mode(rs) != RSTREAM_FRAMED || busy_loop_end(rs, busy_loop_current_time()))
		return;
	id = busy_id(rs);
	if (id < MIN_NAPI_ID)
		return;
	napi_busy_loop(id, flags & MSG_DONTWAIT ? NULL : busy_loop_end, rs,
		       READ_ONCE(sk->sk_prefer_busy_poll),
		       READ_ONCE(sk->sk_busy_poll_budget) ?: BUSY_POLL_BUDGET);
}
#else
static void busy_loop(struct rstream *rs, int flags)
{
}
#endif

int rstream_recvmsg(struct socket *sock, struct msghdr *msg, size_t len,
		    int flags)
{
	struct rstream *rs = rstream_of(sock->sk);
	ktime_t stamp = 0;
	int ret;

	/* no payload: packets from the error queue, or quoted by routers, may contain HELLO */
	if (flags & MSG_ERRQUEUE)
		return rs->tcp_ops->recvmsg(sock, msg,
					    rstream_fell_back(rs) ? len : 0, flags);
	if (sk_can_busy_loop(sock->sk))
		busy_loop(rs, flags);
	ret = rstream_recv_begin(rs, sock, flags);
	if (ret < 0)
		return ret;
	if (!ret)
		return rs->tcp_ops->recvmsg(sock, msg, len, flags);
	sock_rps_record_flow(sock->sk);
	if (flags & MSG_OOB)
		ret = rstream_urg_recv(rs, msg, len, flags);
	else if (rs->mode != RSTREAM_FRAMED)
		ret = 0;		/* end of file */
	else
		ret = recv_framed(rs, msg, len, flags, &stamp);
	rstream_unlock(rs);
	msg->msg_namelen = 0;
	if (ret >= 0 && stamp && !(flags & MSG_OOB) && rx_time_told(sock->sk))
		tell_time(sock->sk, msg, stamp);
	if (ret >= 0)
		tell_inq(rs, msg);
	return ret;
}
