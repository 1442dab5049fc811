// SPDX-License-Identifier: GPL-2.0-only
/*
 * What there is to read: first the queue, with data that has arrived by TCP or was moved out
 * of a ring, then the ring.  Carriers fill the queue, receive calls empty it (stream_recv.c).
 *
 * Socket held, except in functions that say how much there is.
 */
#include <net/proto_memory.h>
#include <net/tcp.h>

#include "base/stats.h"
#include "stream.h"

/* ---- memory ---- */

/*
 * Charge the socket for @size bytes that it can do without, such as a ring.  Leave some memory
 * to the control group: if it is full, the next allocation, even the charge in accept(), may
 * invoke the OOM killer.  So this asks for CHARGE_LEAVES more than needed and returns them.  That
 * also makes the charge larger than PAGE_ALLOC_COSTLY_ORDER, so it does not invoke the OOM killer
 * itself.  Nor may it bring TCP under memory pressure, or the group above memory.high, where the
 * task would sleep.  The caller returns what it does not use by sk_mem_reclaim().  Not in softirq,
 * where a control group's limit is not enforced.
 */
#define CHARGE_LEAVES	SZ_2M
/* Likewise for bytes that it needs; the kernel charges a batch of 64 pages at once. */
#define PEEK_LEAVES	(2 * 64 * PAGE_SIZE)

bool rstream_rxq_charge(struct rstream *rs, u32 size)
{
	u32 most = size + CHARGE_LEAVES;
	struct sock *sk = rs->sk;

	if (sk_memory_allocated(sk) + sk_mem_pages(most) > sk_prot_mem_limits(sk, 1) ||
	    !rstream_account_can_charge(sk->sk_memcg, most) ||
	    !__sk_mem_schedule(sk, most, SK_MEM_RECV))
		return false;
	__sk_mem_reclaim(sk, CHARGE_LEAVES);
	return true;
}

/* ---- the queue ---- */

/* Pieces of up to this many bytes are copied, because a clone would keep far more memory. */
#define RX_COPY_MAX	1024
#define RX_OWN_SIZE	SKB_WITH_OVERHEAD(4096)
/* So are larger ones whose clone would keep more than this many times their size. */
#define RX_WASTE	4

/*
 * How much memory the queue may keep, bytes.  A peer that respects our window, and sends little
 * but DATA, never reaches this, even if each of its bytes keeps RX_WASTE bytes.
 */
static u64 rx_most(const struct rstream *rs)
{
	return max_t(u64, READ_ONCE(rs->sk->sk_rcvbuf), RX_WASTE * rs->rxq.window);
}

/*
 * May we keep @size bytes?  If the program has nothing to read, one piece is kept in any case,
 * as TCP does: the charge for TCP's @skb will be returned soon.
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
 * accept() charges the control group of its caller for what it finds in sk_rmem_alloc, so until
 * then, our charges are included there.
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
 * An skb of ours at the end of the queue, with room for some of @len bytes.  The first one is no
 * larger than necessary: often it remains the only one, and many kernels zero allocations.
 * @from: the skb with the bytes; or NULL
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

/* The share of @len bytes of @skb in the memory that it keeps. */
static u32 rx_share(const struct sk_buff *skb, u32 len)
{
	return mult_frac((u64)skb->truesize, len, skb->len);
}

/*
 * A clone keeps all of @skb's memory, so all of it is charged.  It is charged once, for the last
 * of its clones, which is the last to be freed.
 */
static struct sk_buff *rx_clone(struct rstream *rs, struct sk_buff *skb, u32 off, u32 len)
{
	struct sk_buff *last = rs->rxq.clone, *clone;
	bool again = last && last->head == skb->head;

	if (!again && !rx_may_keep(rs, skb, skb->truesize))
		return NULL;
	clone = skb_clone(skb, GFP_ATOMIC);
	if (!clone)
		return NULL;
	rx_queue(rs, clone, off, len, false, again ? 0 : skb->truesize);
	if (again)
		swap(rstream_skb_cb(last)->charged, rstream_skb_cb(clone)->charged);
	rs->rxq.clone = clone;
	return clone;
}

/*
 * Queue up to @len bytes at @off of TCP's @skb: small pieces are copied together into an skb of
 * ours, large ones cloned.  Return: bytes; 0 without memory, or if we may not have more.
 */
u32 rstream_rxq_add(struct rstream *rs, struct sk_buff *skb, u32 off, u32 len)
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

/* Likewise for a few bytes that are not in an skb, all or none.  Return: false without memory. */
bool rstream_rxq_add_bytes(struct rstream *rs, const u8 *bytes, u32 len)
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

void rstream_rxq_drop(struct rstream *rs, struct sk_buff *skb)
{
	if (skb == rs->rxq.clone)
		rs->rxq.clone = NULL;
	__skb_unlink(skb, &rs->rxq.skbs);
	rx_uncharge(rs, rstream_skb_cb(skb)->charged);
	__kfree_skb(skb);
}

void rstream_rxq_free(struct rstream *rs)
{
	struct sk_buff *skb;

	while ((skb = skb_peek(&rs->rxq.skbs)))
		rstream_rxq_drop(rs, skb);
	rs->rxq.bytes = 0;
}

/*
 * Charge for @size bytes that a program peeks at.  It has a claim to them: if need be, it sleeps
 * for them (memory.high), but it is not killed.
 */
static bool charge_peeked(struct rstream *rs, u32 size)
{
	return rstream_rxq_charge(rs, size) ||
	       (rstream_account_has_room(rs->sk->sk_memcg, size + PEEK_LEAVES) &&
		__sk_mem_schedule(rs->sk, size, SK_MEM_RECV));
}

/*
 * Copy bytes @from to @to of a ring of @size bytes at @mem to the queue, as many as there is
 * memory for.  They fill up the last skb first, so that many small copies waste no memory.  The
 * caller adds them to rxq.bytes.  @peek: charge by charge_peeked(); not in softirq.
 * Return: bytes copied.
 */
u64 rstream_rxq_save(struct rstream *rs, const u8 *mem, u32 size, u64 from, u64 to, bool peek)
{
	struct sk_buff *skb = skb_peek_tail(&rs->rxq.skbs);
	bool empty = !skb;
	u64 at = from;
	u32 n;

	/* the first piece in any case, as in rx_may_keep() */
	if (peek && !charge_peeked(rs, DIV_ROUND_UP(to - from, RX_OWN_SIZE) *
				   SKB_TRUESIZE(RX_OWN_SIZE))) {
		if (!empty)
			return 0;
		to = min(to, from + RX_OWN_SIZE);
	}
	if (skb && !rstream_skb_cb(skb)->own)
		skb = NULL;
	while (at < to) {
		u32 pos = at & (size - 1);

		if (!skb || !skb_tailroom(skb)) {
			n = empty ? min_t(u64, to - at, RX_OWN_SIZE) : RX_OWN_SIZE;
			skb = alloc_skb(n, peek ? GFP_KERNEL : GFP_ATOMIC);
			if (!skb)
				break;
			if (!peek && !sk_rmem_schedule(rs->sk, skb, skb->truesize)) {
				kfree_skb(skb);
				break;
			}
			rx_queue(rs, skb, 0, 0, true, skb->truesize);
			empty = false;
		}
		n = min3(to - at, (u64)(size - pos), (u64)skb_tailroom(skb));
		skb_put_data(skb, mem + pos, n);
		rstream_skb_cb(skb)->len += n;
		rstream_skb_cb(skb)->stamp = rs->granted.stamp;
		at += n;
	}
	if (peek)
		sk_mem_reclaim(rs->sk);
	return at - from;
}

/*
 * How large the window may be: half of TCP's receive buffer, because skbs keep more memory than
 * their data.  TCP's autotuning enlarges that buffer when we take much from it in a round trip;
 * on average, that is what the program reads.
 */
u64 rstream_rxq_window_most(const struct rstream *rs)
{
	/* a peer that sends HELLO first may send this much before it knows our window */
	u64 least = rs->server || rs->offer.prelude ? RSW_FIRST_WINDOW : SZ_4K;

	return max_t(u64, READ_ONCE(rs->sk->sk_rcvbuf) / 2, least);
}

/*
 * Return: the window.  It begins small and grows as the program reads, unless the program has
 * chosen its buffer, as with TCP.
 */
u64 rstream_rxq_window(struct rstream *rs)
{
	u64 least = rstream_rxq_window_most(rs);

	if (!(rs->sk->sk_userlocks & SOCK_RCVBUF_LOCK))
		least = min_t(u64, least, RSW_FIRST_WINDOW);
	if (rs->rxq.window < least)
		WRITE_ONCE(rs->rxq.window, least);
	return rs->rxq.window;
}

/* ---- what there is ---- */

/* Ring offset of the next byte to be read from the ring.  Without the lock, too. */
u64 rstream_rxq_ring_at(const struct rstream *rs)
{
	u64 base = READ_ONCE(rs->rx.base);

	return max3(base, READ_ONCE(rs->rx.consumed), READ_ONCE(rs->granted.moved)) -
	       base;
}

/* Has everything arrived that the peer will ever send? */
bool rstream_rxq_ring_ended(const struct rstream *rs)
{
	return rs->rx.fin && rs->rx.arrived == rs->rx.fin_at && !rs->in.data_left;
}

/*
 * Are bytes of the ring still to be read?  They may be counted after TCP is closed, and the stream
 * is not over before they are.
 */
bool rstream_rxq_ring_owes(const struct rstream *rs)
{
	return rstream_rx_fin_here(&rs->rx) && READ_ONCE(rs->rx.state) == RSTREAM_ON_RING &&
	       READ_ONCE(rs->rx.consumed) < rs->rx.fin_at && !READ_ONCE(rs->error);
}

bool rstream_rxq_over(const struct rstream *rs)
{
	const struct sock *sk = rs->sk;

	return rstream_rx_eof(&rs->rx) || READ_ONCE(sk->sk_err) ||
	       READ_ONCE(rs->shutdown) & RCV_SHUTDOWN ||
	       (READ_ONCE(sk->sk_state) == TCP_CLOSE && !rstream_rxq_ring_owes(rs));
}

static u64 ring_ready(const struct rstream *rs, const struct rstream_rxring *ring)
{
	u64 at, end;

	if (!ring || READ_ONCE(rs->rx.state) < RSTREAM_ON_RING)
		return 0;
	at = rstream_rxq_ring_at(rs);
	/* pairs with rstream_rxring_data(): the bytes are in memory */
	end = smp_load_acquire(&ring->landed);
	/* don't read what is being refused with this error */
	if (READ_ONCE(rs->error))
		end = min(end, READ_ONCE(rs->rx.arrived) - READ_ONCE(rs->rx.base));
	/* without the lock, @at may be newer than @ring */
	return end > at ? end - at : 0;
}

u64 rstream_rxq_ring_ready(const struct rstream *rs)
{
	rstream_assert_held(rs);
	return ring_ready(rs, rs->rxring);
}

static u64 ring_ready_unlocked(const struct rstream *rs)
{
	u64 ready;

	if (!READ_ONCE(rs->rxring))
		return 0;
	rcu_read_lock();	/* which frees the ring */
	ready = ring_ready(rs, READ_ONCE(rs->rxring));
	rcu_read_unlock();
	return ready;
}

/* How many bytes have arrived in the ring. */
static u64 ring_landed_unlocked(const struct rstream *rs)
{
	const struct rstream_rxring *ring;
	u64 landed;

	rcu_read_lock();	/* which frees the ring */
	ring = READ_ONCE(rs->rxring);
	/* pairs with rstream_rxring_data() */
	landed = ring ? smp_load_acquire(&ring->landed) : 0;
	rcu_read_unlock();
	return landed;
}

/*
 * As rstream_rxq_ring_ended(), without the lock, and counting what has landed since.  Compares only
 * what grows: the sum of what can be read and what has been is wrong while somebody reads.
 */
bool rstream_rxq_all_here(const struct rstream *rs)
{
	u64 fin_at;

	if (!rstream_rx_fin_here(&rs->rx))
		return false;
	fin_at = READ_ONCE(rs->rx.fin_at);
	/* there is no other ring after FIN, so this one has this base */
	if (READ_ONCE(rs->rx.state) == RSTREAM_ON_RING && !READ_ONCE(rs->error) &&
	    ring_landed_unlocked(rs) >= fin_at - READ_ONCE(rs->rx.base))
		return true;
	smp_rmb();	/* what had landed was counted before the stream left the ring */
	/* pairs with rstream_rx_data(): the bytes of a record are counted ahead */
	if (smp_load_acquire(&rs->rx.arrived) != fin_at)
		return false;
	/* pairs with parse_some() */
	return !smp_load_acquire(&rs->in.data_left);
}

/* How many bytes a read would find.  Only a hint without the lock. */
u64 rstream_rxq_ready(const struct rstream *rs)
{
	u64 in_tcp = smp_load_acquire(&rs->plain_rx.in_tcp);	/* first, because it moves to rxq */

	/* pairs with ring_moved() */
	return in_tcp + smp_load_acquire(&rs->rxq.bytes) + ring_ready_unlocked(rs);
}

/*
 * Likewise, with what is in TCP's queue behind the end of a span: a read finds that once it has
 * read the span.
 */
u64 rstream_rxq_here(const struct rstream *rs)
{
	u64 ready = rstream_rxq_ready(rs);

	if (READ_ONCE(rs->in.left) == RSTREAM_LEFT_UNREAD)
		ready += READ_ONCE(rs->plain_rx.behind);
	return ready;
}

/* Is stream offset @at the mark? */
bool rstream_rxq_at_mark(const struct rstream *rs, u64 at)
{
	return READ_ONCE(rs->urg.state) && READ_ONCE(rs->urg.at) == at;
}

/* Can the urgent byte be read?  Without the lock, too. */
bool rstream_rxq_urg_here(const struct rstream *rs)
{
	return READ_ONCE(rs->urg.state) == RSTREAM_URG_NEW &&
	       rstream_rxq_ready(rs) >
	       READ_ONCE(rs->urg.at) - READ_ONCE(rs->rx.consumed);
}

/*
 * Are SO_RCVLOWAT bytes ready?  We never wait for more than half of what can be here at once, nor
 * for memory.  Without the lock, too, as rstream_rxq_ready().
 */
bool rstream_rxq_enough(const struct rstream *rs)
{
	u64 target = sock_rcvlowat(rs->sk, 0, INT_MAX);
	u64 ready = rstream_rxq_here(rs);
	u64 most;

	if (target <= 1 && !READ_ONCE(rs->urg.state))
		return ready;
	most = rstream_rx_on_ring(&rs->rx) ? READ_ONCE(rs->granted.size) / 2 :
					     READ_ONCE(rs->rxq.window) / 2;
	target = min(target, max_t(u64, 1, most));
	/* the urgent byte at the mark does not count */
	if (rstream_rxq_at_mark(rs, READ_ONCE(rs->rx.consumed)) &&
	    !sock_flag(rs->sk, SOCK_URGINLINE))
		target++;
	if (ready >= target || (ready && READ_ONCE(rs->in.left) == RSTREAM_LEFT_SCARCE))
		return true;
	/* what is left with TCP: it may have ended, or TCP has no window or memory for more */
	return ready && (READ_ONCE(rs->plain_rx.in_tcp) ||
			 READ_ONCE(rs->in.left) == RSTREAM_LEFT_UNREAD) &&
	       (READ_ONCE(rs->sk->sk_shutdown) & RCV_SHUTDOWN ||
		tcp_epollin_ready(rs->sk, INT_MAX));
}

/* Is there more to read than was signalled?  Without the lock, it may say so twice. */
static bool rx_news(struct rstream *rs)
{
	/* read first: bytes consumed meanwhile can only make the sum too small */
	u64 consumed = smp_load_acquire(&rs->rx.consumed);
	u64 here = consumed + rstream_rxq_here(rs) + READ_ONCE(rs->rx.fin);

	if (here <= READ_ONCE(rs->rxq.signalled))
		return false;
	WRITE_ONCE(rs->rxq.signalled, here);
	return true;
}

/*
 * Bytes have arrived, or no more will: wake readers that may wait for that.  SIGIO is sent for
 * new bytes only, not for those that were just moved from a ring to the queue; sleepers are woken
 * in any case.
 */
void rstream_rxq_wake(struct rstream *rs)
{
	bool over = rstream_rxq_urg_here(rs) || rstream_rxq_over(rs);

	if (!over && !READ_ONCE(rs->rx.fin) && !rstream_rxq_enough(rs))
		return;
	if (rx_news(rs) || over)
		rstream_wake(rs);
	else
		rstream_wake_sleepers(rs);
}

/* Likewise, but only if something is new: what has been signalled is no event again. */
void rstream_rxq_wake_news(struct rstream *rs)
{
	if (rstream_rxq_enough(rs) && rx_news(rs))
		rstream_wake(rs);
}
