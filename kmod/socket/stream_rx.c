// SPDX-License-Identifier: GPL-2.0-only
/*
 * To the program: receive calls on a connection with records.
 *
 * What there is to read is the queue of skbs from the tcp carrier and, once
 * the peer has switched, what has landed in the ring behind it.
 */
#include <linux/sched/signal.h>
#include <net/tcp.h>

#include "base/stats.h"
#include "af_rdmastream.h"
#include "stream.h"

/* ---- the queue ---- */

/* Pieces up to this are copied: a clone would keep far more memory, bytes. */
#define RX_COPY_MAX	1024
#define RX_OWN_SIZE	SKB_WITH_OVERHEAD(4096)
/* And those that would keep more than so many times their size. */
#define RX_WASTE	4

/*
 * Memory that the queue may keep, bytes.  A peer that respects its window does not come
 * there, be every byte of it kept by RX_WASTE.
 */
static u64 rx_most(const struct rstream *rs)
{
	return max_t(u64, READ_ONCE(rs->sk->sk_rcvbuf), RX_WASTE * rs->rxq.window);
}

/*
 * Is there memory for @size bytes?  Where the program has nothing to read it gets one
 * piece in any case, as TCP takes one: what TCP has charged for @skb comes back when
 * that is done.
 */
static bool rx_may_keep(struct rstream *rs, struct sk_buff *skb, u32 size)
{
	if (skb_queue_empty(&rs->rxq.skbs)) {
		sk_rmem_schedule(rs->sk, skb, size);
		return true;
	}
	return rs->rxq.mem + size <= rx_most(rs) &&
	       sk_rmem_schedule(rs->sk, skb, size);
}

/*
 * accept() charges the control group of who accepts for what it finds in sk_rmem_alloc;
 * till then this has to be there.
 */
static void rx_charge(struct rstream *rs, u32 size)
{
	rs->rxq.mem += size;
	if (!rs->accepted)
		atomic_add(size, &rs->sk->sk_rmem_alloc);
	sk_mem_charge(rs->sk, size);
}

static void rx_uncharge(struct rstream *rs, u32 size)
{
	rs->rxq.mem -= size;
	if (!rs->accepted)
		atomic_sub(size, &rs->sk->sk_rmem_alloc);
	sk_mem_uncharge(rs->sk, size);
}

/* A program has got it from accept(), which has charged it. */
void rstream_rx_accepted(struct rstream *rs)
{
	struct sock *sk = rs->sk;

	atomic_sub(rs->rxq.mem, &sk->sk_rmem_alloc);
	WRITE_ONCE(rs->accepted, true);
	/* TCP has room again, and its window goes with any record */
	if (rs->mode == RSTREAM_FRAMED && rs->hello.in &&
	    rs->rxq.mem >= READ_ONCE(sk->sk_rcvbuf) / 2) {
		set_bit(RSTREAM_WANT_ACK, &rs->want);
		rstream_push(rs);
	}
}

static void rx_queue(struct rstream *rs, struct sk_buff *skb, u32 off, u32 len,
		     bool own, u32 size)
{
	struct rstream_skb_cb *cb = rstream_skb_cb(skb);

	cb->off = off;
	cb->len = len;
	cb->own = own;
	cb->stamp = 0;
	cb->charged = size;
	rx_charge(rs, size);
	__skb_queue_tail(&rs->rxq.skbs, skb);
}

/*
 * An skb of ours at the queue's end with room for some of @len bytes.  The first is no
 * larger than it must be: often it is the only one, and kernels clear what they allocate.
 * @from: where the bytes are; or NULL
 */
static struct sk_buff *rx_own_tail(struct rstream *rs, struct sk_buff *from, u32 len)
{
	struct sk_buff *skb = skb_peek_tail(&rs->rxq.skbs);

	if (skb && rstream_skb_cb(skb)->own &&
	    skb_tailroom(skb) >= min_t(u32, len, RX_COPY_MAX))
		return skb;
	skb = alloc_skb(skb ? RX_OWN_SIZE : min_t(u32, len, RX_OWN_SIZE), GFP_ATOMIC);
	if (!skb)
		return NULL;
	if (!rx_may_keep(rs, from ?: skb, skb->truesize)) {
		kfree_skb(skb);
		return NULL;
	}
	rx_queue(rs, skb, 0, 0, true, skb->truesize);
	return skb;
}

/* How much of the memory that @skb keeps @len bytes of it are the reason for. */
static u32 rx_share(const struct sk_buff *skb, u32 len)
{
	return mult_frac((u64)skb->truesize, len, skb->len);
}

static struct sk_buff *rx_clone(struct rstream *rs, struct sk_buff *skb, u32 off, u32 len)
{
	u32 size = rx_share(skb, len);
	struct sk_buff *clone;

	if (!rx_may_keep(rs, skb, size))
		return NULL;
	clone = skb_clone(skb, GFP_ATOMIC);
	if (clone)
		rx_queue(rs, clone, off, len, false, size);
	return clone;
}

/*
 * Keep up to @len bytes at @off of TCP's @skb: many small pieces together in an skb of
 * ours, large ones as a clone.  Return: bytes, 0: there is no memory, or no more of it
 * for us.
 */
u32 rstream_rx_add(struct rstream *rs, struct sk_buff *skb, u32 off, u32 len)
{
	ktime_t stamp = skb->tstamp;
	struct sk_buff *to;

	if (len <= RX_COPY_MAX || rx_share(skb, len) > RX_WASTE * len) {
		to = rx_own_tail(rs, skb, len);
		if (!to)
			return 0;
		len = min_t(u32, len, skb_tailroom(to));
		if (skb_copy_bits(skb, off, skb_put(to, len), len))
			return 0;
		rstream_skb_cb(to)->len += len;
	} else {
		to = rx_clone(rs, skb, off, len);
		if (!to)
			return 0;
	}
	if (TCP_SKB_CB(skb)->has_rxtstamp)
		rstream_skb_cb(to)->stamp = stamp;
	WRITE_ONCE(rs->rxq.bytes, rs->rxq.bytes + len);
	return len;
}

/* The same of a few bytes in no skb, all or none.  Return: false without memory. */
bool rstream_rx_add_bytes(struct rstream *rs, const u8 *bytes, u32 len)
{
	struct sk_buff *to = rx_own_tail(rs, NULL, len);

	BUILD_BUG_ON(sizeof(rs->part) > RX_COPY_MAX);
	if (!to)
		return false;
	skb_put_data(to, bytes, len);
	rstream_skb_cb(to)->len += len;
	WRITE_ONCE(rs->rxq.bytes, rs->rxq.bytes + len);
	return true;
}

static void rx_drop(struct rstream *rs, struct sk_buff *skb)
{
	__skb_unlink(skb, &rs->rxq.skbs);
	rx_uncharge(rs, rstream_skb_cb(skb)->charged);
	__kfree_skb(skb);
}

void rstream_rx_free(struct rstream *rs)
{
	struct sk_buff *skb;

	while ((skb = skb_peek(&rs->rxq.skbs)))
		rx_drop(rs, skb);
	rs->rxq.bytes = 0;
}

/*
 * Keep the bytes @from to @to of a ring of @size bytes at @mem, all or none.
 * They do not count as rxq.bytes yet.  Return: false without memory.
 */
bool rstream_rx_save(struct rstream *rs, const u8 *mem, u32 size, u64 from,
		     u64 to)
{
	struct sk_buff_head saved;
	struct sk_buff *skb;
	u32 truesize = 0;

	__skb_queue_head_init(&saved);
	while (from < to) {
		u32 pos = from & (size - 1);
		u32 n = min3(to - from, (u64)(size - pos), (u64)RX_OWN_SIZE);

		skb = alloc_skb(RX_OWN_SIZE, GFP_ATOMIC);
		if (!skb)
			goto none;
		skb_put_data(skb, mem + pos, n);
		truesize += skb->truesize;
		__skb_queue_tail(&saved, skb);
		from += n;
	}
	skb = skb_peek(&saved);
	if (skb && !sk_rmem_schedule(rs->sk, skb, truesize))
		goto none;
	while ((skb = __skb_dequeue(&saved))) {
		rx_queue(rs, skb, 0, skb->len, true, skb->truesize);
		rstream_skb_cb(skb)->stamp = rs->rxq.stamp;
	}
	return true;
none:
	__skb_queue_purge(&saved);
	return false;
}

/*
 * Keep as many of these bytes as there is memory for, at least some if the queue is empty.
 * They do not count as rxq.bytes yet, either.  Not in softirq.  Return: how many.
 */
u64 rstream_rx_keep(struct rstream *rs, const u8 *mem, u32 size, u64 from, u64 to)
{
	u32 skbs = DIV_ROUND_UP(to - from, RX_OWN_SIZE);
	struct sk_buff *skb = skb_peek_tail(&rs->rxq.skbs);
	u64 at = from;

	if (!rstream_charge_spare(rs, skbs * SKB_TRUESIZE(RX_OWN_SIZE))) {
		if (skb)
			return 0;
		to = min(to, from + RX_OWN_SIZE);
	}
	if (skb && !rstream_skb_cb(skb)->own)
		skb = NULL;
	while (at < to) {
		u32 pos = at & (size - 1);
		u32 n = min(to - at, (u64)(size - pos));

		if (!skb || !skb_tailroom(skb)) {
			skb = alloc_skb(min_t(u64, to - at, RX_OWN_SIZE), GFP_KERNEL);
			if (!skb)
				break;
			rx_queue(rs, skb, 0, 0, true, skb->truesize);
		}
		n = min_t(u32, n, skb_tailroom(skb));
		skb_put_data(skb, mem + pos, n);
		rstream_skb_cb(skb)->len += n;
		rstream_skb_cb(skb)->stamp = rs->rxq.stamp;
		at += n;
	}
	sk_mem_reclaim(rs->sk);
	return at - from;
}

static u64 ring_ready(const struct rstream *rs)
{
	const struct rstream_rxring *ring;
	u64 ready = 0;

	if (!READ_ONCE(rs->rxring))
		return 0;
	/* poll() comes here without the lock: the ring is freed by RCU */
	rcu_read_lock();
	ring = READ_ONCE(rs->rxring);
	if (ring && (READ_ONCE(rs->rx.state) == RSTREAM_ON_RING ||
		     READ_ONCE(rs->leave.leaving))) {
		u64 at = rstream_ring_at(rs);
		/* pairs with message_data(): the bytes are there */
		u64 end = smp_load_acquire(&ring->landed);

		/* what was one too many is nobody's */
		if (READ_ONCE(rs->error))
			end = min(end, READ_ONCE(rs->rx.arrived) - READ_ONCE(rs->rx.base));
		/* without the lock, @at may be of a later time than @ring */
		ready = end > at ? end - at : 0;
	}
	rcu_read_unlock();
	return ready;
}

/* Bytes that a read would find.  Lockless readers get a hint. */
u64 rstream_rx_ready(const struct rstream *rs)
{
	u64 lazy = smp_load_acquire(&rs->plain.lazy);	/* first: it goes to rxq */

	/* pairs with rstream_ring_leave() */
	return lazy + smp_load_acquire(&rs->rxq.bytes) + ring_ready(rs);
}

/*
 * Is it as much as SO_RCVLOWAT says?  More than half of what can be here at once
 * is never waited for, nor is memory.  As rstream_rx_ready(), without the lock, too.
 */
bool rstream_rx_enough(const struct rstream *rs)
{
	u64 target = sock_rcvlowat(rs->sk, 0, INT_MAX);
	u64 most = rs->rx.state == RSTREAM_ON_RING ?
		   READ_ONCE(rs->granted.size) / 2 : READ_ONCE(rs->rxq.window) / 2;
	u64 ready = rstream_rx_ready(rs);

	target = min(target, max_t(u64, 1, most));
	/* the urgent byte at the mark is no byte to read */
	if (rstream_urg_at_mark(rs, READ_ONCE(rs->rx.consumed)) &&
	    !sock_flag(rs->sk, SOCK_URGINLINE))
		target++;
	/* what is with TCP: its window may be less than that */
	return ready >= target || (ready && READ_ONCE(rs->in.held)) ||
	       (READ_ONCE(rs->plain.lazy) && tcp_epollin_ready(rs->sk, target));
}

/* Bytes have come, or none will: is it what somebody waits for? */
void rstream_wake_readers(struct rstream *rs)
{
	if (READ_ONCE(rs->rx.fin) || rstream_rx_enough(rs) ||
	    rstream_urg_here(rs) || rstream_rx_over(rs))
		rstream_wake(rs);
}

/* ---- copying out ---- */

/* @skip: bytes of the stream before the first to be copied (MSG_PEEK). */
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
	u64 at = rstream_ring_at(rs) + skip;
	u32 pos = at & (ring->size - 1);
	size_t n = min3(len, (size_t)(ring->size - pos),
			(size_t)(ring_ready(rs) - skip)), got;

	if (trunc)
		return n;
	/* not by the mapping, which a hardened kernel would look up each time */
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

int rstream_rx_copy(struct rstream *rs, struct msghdr *msg, size_t len,
		    u64 skip, bool trunc)
{
	if (skip < rs->rxq.bytes)
		return copy_queue(rs, msg, len, skip, trunc);
	return copy_ring(rs, msg, len, skip - rs->rxq.bytes, trunc);
}

/* The program has @len bytes more. */
void rstream_rx_consume(struct rstream *rs, size_t len)
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
			rx_drop(rs, skb);
	}
	WRITE_ONCE(rs->rx.consumed, rs->rx.consumed + len);
	/* pairs with poll: who looks meanwhile may see them twice, but not miss them */
	smp_store_release(&rs->rxq.bytes, rs->rxq.bytes - from_queue);
	if (rs->urg.state && rs->rx.consumed > rs->urg.at)
		WRITE_ONCE(rs->urg.state, RSTREAM_URG_NONE);
	/* what was peeked at is in the queue, but was the ring's */
	if (len > from_queue || (rs->rxring && rs->granted.moved > rs->rx.base))
		rstream_ring_read(rs, len - from_queue);
	rstream_hist_read(rs);
}

/*
 * How large the window may be: half of TCP's receive buffer, as bytes keep more memory
 * than they are.  TCP makes its buffer larger when much is taken from it in a round trip,
 * and no more is than the program reads.
 */
u64 rstream_window_most(const struct rstream *rs)
{
	/* who says HELLO first may send this much before it knows our window */
	u64 least = rs->server || rs->offer.prelude ? RSW_FIRST_WINDOW : SZ_4K;

	return max_t(u64, READ_ONCE(rs->sk->sk_rcvbuf) / 2, least);
}

static void window_grow(struct rstream *rs)
{
	u64 most = rstream_window_most(rs);

	if (rs->rxq.window < most && !tcp_under_memory_pressure(rs->sk))
		WRITE_ONCE(rs->rxq.window, min(2 * rs->rxq.window, most));
}

/* Tell the peer of its new window when half of it has been used. */
void rstream_rx_ack(struct rstream *rs)
{
	if (rs->mode != RSTREAM_FRAMED)
		return;			/* disconnected while the reader slept */
	rstream_prelude_more(rs);
	if (rs->in.held)
		rstream_parse(rs);
	/*
	 * A packet that found no memory made TCP close its window.  It opens that again
	 * when its own queue is read, which we have emptied before.
	 */
	if (!rs->in.held && !tcp_receive_window(tcp_sk(rs->sk)) &&
	    !(rs->sk->sk_shutdown & RCV_SHUTDOWN))
		rstream_tcp_ack(rs->sk);
	if (rs->granted.full && rs->rxq.bytes <= rs->rxq.window)
		rstream_queue(rs, RSTREAM_DO_GRANT);
	if (rs->plain.tx)
		return;			/* the window is TCP's */
	if (rs->rx.fin && rs->tx.fin)
		rstream_push(rs);	/* perhaps TCP can be closed now */
	if (rs->rx.state == RSTREAM_ON_RING || rstream_ring_ended(rs))
		return;
	if (rs->rx.consumed + rs->rxq.window - rs->rx.limit >= rs->rxq.window / 2) {
		window_grow(rs);
		set_bit(RSTREAM_WANT_ACK, &rs->want);
		rstream_push(rs);
	}
}

/* ---- waiting ---- */

/*
 * The last bytes of a ring may be counted after TCP, all said, has closed: the
 * stream isn't over then.
 */
bool rstream_ring_owes(const struct rstream *rs)
{
	return READ_ONCE(rs->rx.fin) && rs->rx.state == RSTREAM_ON_RING &&
	       READ_ONCE(rs->rx.consumed) < rs->rx.fin_at &&
	       !READ_ONCE(rs->rx.lost) && !READ_ONCE(rs->error);
}

bool rstream_rx_over(const struct rstream *rs)
{
	const struct sock *sk = rs->sk;

	return rstream_rx_eof(&rs->rx) || READ_ONCE(sk->sk_err) ||
	       READ_ONCE(rs->shutdown) & RCV_SHUTDOWN ||
	       (READ_ONCE(sk->sk_state) == TCP_CLOSE && !rstream_ring_owes(rs));
}

static bool undecided(const struct rstream *rs)
{
	u8 mode = READ_ONCE(rs->mode);

	return mode == RSTREAM_ASKED || (mode == RSTREAM_RAW &&
					 READ_ONCE(rs->hello.guard));
}

/* Nothing to read.  Return: 0 end of the stream or go on, else the errno. */
int rstream_rx_status(struct rstream *rs, bool *eof)
{
	struct sock *sk = rs->sk;

	*eof = rstream_rx_eof(&rs->rx) || rs->shutdown & RCV_SHUTDOWN;
	if (*eof)
		return 0;
	if (sk->sk_err)
		return sock_error(sk);
	if (sk->sk_state == TCP_CLOSE && !rstream_ring_owes(rs)) {
		/* the error has been told: as TCP, end of file */
		*eof = sk->sk_shutdown & RCV_SHUTDOWN;
		return *eof ? 0 : -ENOTCONN;
	}
	return 0;
}

int rstream_rx_wait(struct rstream *rs, long *timeo, u64 more_than)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	struct sock *sk = rs->sk;
	int err;

	if (!*timeo)
		return -EAGAIN;
	if (rstream_hello_waits(rs))
		rstream_push(rs);
	if (signal_pending(current))
		return sock_intr_errno(*timeo);
	add_wait_queue(sk_sleep(sk), &wait);
	err = sk_wait_event(sk, timeo, rstream_rx_ready(rs) > more_than ||
			    rstream_rx_over(rs), &wait);
	remove_wait_queue(sk_sleep(sk), &wait);
	return min(err, 0);
}

/* ---- receive calls ---- */

/* Does the program want to know when bytes came? */
bool rstream_rx_timed(const struct rstream *rs)
{
	return sock_flag(rs->sk, SOCK_TIMESTAMP) ||
	       sock_flag(rs->sk, SOCK_TIMESTAMPING_RX_SOFTWARE);
}

/* When the last bytes came that the next read has, 0: nobody knows. */
static ktime_t stamp_of(const struct rstream *rs, u64 skip, size_t len)
{
	u64 last = skip + len - 1;
	struct sk_buff *skb;

	skb_queue_walk(&rs->rxq.skbs, skb) {
		if (last < rstream_skb_cb(skb)->len)
			return rstream_skb_cb(skb)->stamp;
		last -= rstream_skb_cb(skb)->len;
	}
	return rs->rxq.stamp;
}

/*
 * How much a read of @len bytes may take, @ahead of what has been consumed: up to
 * the urgent byte.  That one is passed over.
 */
size_t rstream_rx_next(struct rstream *rs, size_t len, u64 *ahead, bool peek)
{
	u64 at = rs->rx.consumed + *ahead;

	if (rstream_urg_at_mark(rs, at) && rstream_rx_ready(rs) > *ahead &&
	    !sock_flag(rs->sk, SOCK_URGINLINE)) {
		if (peek)
			++*ahead;
		else
			rstream_rx_consume(rs, 1);
		at++;
	}
	if (rstream_rx_ready(rs) <= *ahead)
		return 0;
	if (rs->urg.state && rs->urg.at > at)
		len = min_t(u64, len, rs->urg.at - at);
	return len;
}

/*
 * What a program has seen is what it will read: the next bytes, @len behind @ahead of them,
 * go from the ring, where the peer can still write, to the queue.  Return: false without
 * memory for any of the @len.
 */
bool rstream_rx_seen(struct rstream *rs, u64 ahead, size_t len)
{
	if (ahead + len > rs->rxq.bytes)
		rstream_ring_keep(rs, min(ahead + len - rs->rxq.bytes, ring_ready(rs)));
	return ahead < rs->rxq.bytes;
}

/*
 * Copy what is here, at most @len bytes, @ahead of what has been consumed.
 * Return: bytes, 0 if there is none, or a negative errno.
 */
static int recv_some(struct rstream *rs, struct msghdr *msg, size_t len,
		     u64 *ahead, int flags, ktime_t *stamp)
{
	int n;

	if (rs->plain.lazy && !rs->rxq.bytes && !rs->urg.state && !rstream_rx_timed(rs) &&
	    !(flags & (MSG_PEEK | MSG_TRUNC))) {
		n = rstream_prelude_copy(rs, msg, len);
		if (n > 0)
			sk_peek_offset_bwd(rs->sk, n);
		return n;
	}
	if (rs->plain.mute && !rs->rxq.bytes)
		rstream_prelude_more(rs);
	/* the urgent byte is passed over */
	if (!rstream_prelude_pull(rs, *ahead + !!rs->urg.state) && rs->rxq.bytes <= *ahead)
		return -ENOMEM;
	len = rstream_rx_next(rs, len, ahead, flags & MSG_PEEK);
	if (!len)
		return 0;
	if ((flags & (MSG_PEEK | MSG_TRUNC)) == MSG_PEEK && !rstream_rx_seen(rs, *ahead, len))
		return rs->error ? 0 : -ENOMEM;
	n = rstream_rx_copy(rs, msg, len, *ahead, flags & MSG_TRUNC);
	if (n <= 0)
		return n ?: -EFAULT;
	*stamp = stamp_of(rs, *ahead, n);
	if (flags & MSG_PEEK) {
		*ahead += n;
		sk_peek_offset_fwd(rs->sk, n);
	} else {
		rstream_rx_consume(rs, n);
		sk_peek_offset_bwd(rs->sk, n);
	}
	return n;
}

static int recv_framed(struct rstream *rs, struct msghdr *msg, size_t len,
		       int flags, ktime_t *stamp)
{
	struct sock *sk = rs->sk;
	long timeo = sock_rcvtimeo(sk, flags & MSG_DONTWAIT);
	size_t target = sock_rcvlowat(sk, flags & MSG_WAITALL, len);
	u64 ahead = max(sk_peek_offset(sk, flags), 0);
	bool peek = flags & MSG_PEEK, eof;
	size_t copied = 0;
	int n, err = 0;

	while (copied < len) {
		rstream_ring_landed(rs);
		if (rstream_urg_at_mark(rs, rs->rx.consumed + ahead)) {
			if (copied)
				break;
			if (signal_pending(current)) {
				err = timeo ? sock_intr_errno(timeo) : -EAGAIN;
				break;
			}
		}
		n = recv_some(rs, msg, len - copied, &ahead, flags, stamp);
		if (n > 0) {
			copied += n;
			continue;
		}
		err = n;
		if (err || copied >= target)
			break;
		if (copied && (sk->sk_err || !timeo || signal_pending(current)))
			break;
		err = rstream_rx_status(rs, &eof);
		if (err || eof)
			break;
		if (!peek)
			rstream_rx_ack(rs);
		err = rstream_rx_wait(rs, &timeo, ahead);
		if (err)
			break;
		if (peek && copied && rstream_rx_over(rs))
			break;
	}
	if (!peek)
		rstream_rx_ack(rs);
	return copied ?: err;
}

static bool deciding(const struct rstream *rs)
{
	return undecided(rs) && READ_ONCE(rs->sk->sk_state) != TCP_CLOSE &&
	       !READ_ONCE(rs->error);
}

static bool connecting(const struct rstream *rs)
{
	return READ_ONCE(rs->mode) == RSTREAM_CONNECTING &&
	       (1 << READ_ONCE(rs->sk->sk_state)) & (TCPF_SYN_SENT | TCPF_SYN_RECV);
}

/*
 * Sleep while @busy().  sk_stream_wait_connect() would have TCP delay the ACK of the
 * handshake.  Return: 0 or why not.
 */
static int wait_while(struct rstream *rs, int flags, bool (*busy)(const struct rstream *rs))
{
	struct sock *sk = rs->sk;
	long timeo = sock_rcvtimeo(sk, flags & MSG_DONTWAIT);
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	int err = 0;

	add_wait_queue(sk_sleep(sk), &wait);
	while (busy(rs)) {
		err = sock_error(sk);
		if (!err && !timeo)
			err = -EAGAIN;
		else if (!err && signal_pending(current))
			err = sock_intr_errno(timeo);
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

/* Until the mode is known. */
static int wait_decision(struct rstream *rs, int flags)
{
	int err = wait_while(rs, flags, deciding);

	if (err || !undecided(rs))
		return err;
	return sock_error(rs->sk) ?: rs->error ? -rs->error : -ENOTCONN;
}

/*
 * No connection: TCP's answer, for another thread may connect before TCP would have the
 * lock.  Return: the errno, or 0: TCP shall say it, for it does not wait.
 */
static int recv_idle(struct rstream *rs, int flags)
{
	struct sock *sk = rs->sk;
	int err;

	if (sk->sk_state != TCP_CLOSE || tcp_sk(sk)->repair)
		return 0;
	if (flags & MSG_OOB)
		return -EINVAL;
	err = sock_error(sk);
	if (err || sk->sk_shutdown & RCV_SHUTDOWN)
		return err;
	return -ENOTCONN;
}

/*
 * Return: 1 if the connection has records and the socket is left locked, 0 if
 * the call is TCP's, else a negative errno.
 */
int rstream_rx_begin(struct rstream *rs, struct socket *sock, int flags)
{
	int mode = rstream_mode(rs), err = 0;

	if (mode == RSTREAM_LISTEN || (mode == RSTREAM_RAW && !READ_ONCE(rs->hello.guard)))
		goto tcp;
	lock_sock(rs->sk);
	if (connecting(rs))	/* whose the call is turns out then */
		err = wait_while(rs, flags, connecting);
	if (!err && (rs->mode == RSTREAM_IDLE || rs->mode == RSTREAM_CONNECTING))
		err = recv_idle(rs, flags);
	if (!err && undecided(rs))
		err = wait_decision(rs, flags);
	if (!err && rs->mode == RSTREAM_FRAMED)
		return 1;
	release_sock(rs->sk);
	if (err)
		return err;
tcp:
	rstream_swap_ops(rs, sock);
	return 0;
}

/* SO_TIMESTAMP and kin, as the kernel says it of a packet. */
static void tell_time(struct sock *sk, struct msghdr *msg, ktime_t stamp)
{
	struct sk_buff *skb = alloc_skb(0, GFP_KERNEL);

	if (!skb)
		return;
	skb->tstamp = stamp;
	sock_recv_timestamp(msg, sk, skb);
	consume_skb(skb);
}

/* TCP_INQ, and what io_uring asks for; more than nothing at the end. */
static void tell_inq(struct rstream *rs, struct msghdr *msg)
{
	bool asked = tcp_sk(rs->sk)->recvmsg_inq;

	if (!asked && !msg->msg_get_inq)
		return;
	msg->msg_inq = min_t(u64, rstream_rx_ready(rs), INT_MAX);
	if (!msg->msg_inq && rstream_rx_eof(&rs->rx))
		msg->msg_inq = 1;
	if (asked)
		put_cmsg(msg, SOL_TCP, TCP_CM_INQ, sizeof(msg->msg_inq),
			 &msg->msg_inq);
}

int rstream_recvmsg(struct socket *sock, struct msghdr *msg, size_t len,
		    int flags)
{
	struct rstream *rs = rstream_of(sock->sk);
	ktime_t stamp = 0;
	int ret;

	if (flags & MSG_ERRQUEUE)
		return rs->tcp_ops->recvmsg(sock, msg, len, flags);
	ret = rstream_rx_begin(rs, sock, flags);
	if (ret < 0)
		return ret;
	if (!ret)
		return rs->tcp_ops->recvmsg(sock, msg, len, flags);
	if (flags & MSG_OOB)
		ret = rstream_urg_recv(rs, msg, len, flags);
	else
		ret = recv_framed(rs, msg, len, flags, &stamp);
	release_sock(sock->sk);
	msg->msg_namelen = 0;
	if (ret >= 0 && !(flags & MSG_OOB)) {
		if (stamp && rstream_rx_timed(rs))
			tell_time(sock->sk, msg, stamp);
		tell_inq(rs, msg);
	}
	return ret;
}
