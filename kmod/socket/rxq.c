// SPDX-License-Identifier: GPL-2.0-only
/*
 * What there is to read: the queue of what has come by TCP, or was moved out of a ring,
 * and behind it the ring.  Carriers fill it, receive calls empty it (stream_rx.c).
 *
 * Socket held, but for what says how much there is.
 */
#include <net/proto_memory.h>
#include <net/tcp.h>

#include "base/stats.h"
#include "stream.h"

/* ---- memory ---- */

/*
 * Charge the socket for @size bytes that it can do without: a ring.  Such does not take the
 * last: of a control group that is full a process is killed for whatever it asks for next,
 * even for what accept() charges.  This much is left, bytes; it also makes the charge larger
 * than PAGE_ALLOC_COSTLY_ORDER, for which nobody is killed at once.  Nor does it bring TCP
 * under pressure.  What is not used goes back by sk_mem_reclaim().  Not in softirq, where a
 * control group's limit does not hold.
 */
#define CHARGE_LEAVES	SZ_2M

bool rstream_charge_spare(struct rstream *rs, u32 size)
{
	u32 most = size + CHARGE_LEAVES;
	struct sock *sk = rs->sk;

	if (sk_memory_allocated(sk) + sk_mem_pages(most) > sk_prot_mem_limits(sk, 1) ||
	    !__sk_mem_schedule(sk, most, SK_MEM_RECV))
		return false;
	__sk_mem_reclaim(sk, CHARGE_LEAVES);
	return true;
}

/* ---- the queue ---- */

/* Pieces up to this are copied: a clone would keep far more memory, bytes. */
#define RX_COPY_MAX	1024
#define RX_OWN_SIZE	SKB_WITH_OVERHEAD(4096)
/* And those that would keep more than so many times their size. */
#define RX_WASTE	4

/*
 * Memory that the queue may keep, bytes.  A peer that respects its window, and sends little
 * but DATA, does not come there, be every byte of it kept by RX_WASTE.
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
 * accept() charges the control group of its caller for what it finds in sk_rmem_alloc, so
 * until then it has to be in there.
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

/*
 * A clone keeps all of @skb, whatever else is in it, so that is what is charged: once, for
 * the last of its clones, which is the last to go.
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

void rstream_rx_drop(struct rstream *rs, struct sk_buff *skb)
{
	if (skb == rs->rxq.clone)
		rs->rxq.clone = NULL;
	__skb_unlink(skb, &rs->rxq.skbs);
	rx_uncharge(rs, rstream_skb_cb(skb)->charged);
	__kfree_skb(skb);
}

void rstream_rx_free(struct rstream *rs)
{
	struct sk_buff *skb;

	while ((skb = skb_peek(&rs->rxq.skbs)))
		rstream_rx_drop(rs, skb);
	rs->rxq.bytes = 0;
}

/*
 * Bytes @from to @to of a ring of @size bytes at @mem go to the queue, as many as there is
 * memory for; close together, however few come at a time.  They do not count as rxq.bytes
 * yet.  @spare: as rstream_charge_spare() charges, and not in softirq.  Return: how many.
 */
u64 rstream_rx_save(struct rstream *rs, const u8 *mem, u32 size, u64 from, u64 to, bool spare)
{
	struct sk_buff *skb = skb_peek_tail(&rs->rxq.skbs);
	bool empty = !skb;
	u64 at = from;
	u32 n;

	/* the first piece in any case, as rx_may_keep() has it */
	if (spare && !rstream_charge_spare(rs, DIV_ROUND_UP(to - from, RX_OWN_SIZE) *
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
			skb = alloc_skb(n, spare ? GFP_KERNEL : GFP_ATOMIC);
			if (!skb)
				break;
			if (!spare && !sk_rmem_schedule(rs->sk, skb, skb->truesize)) {
				kfree_skb(skb);
				break;
			}
			rx_queue(rs, skb, 0, 0, true, skb->truesize);
			empty = false;
		}
		n = min3(to - at, (u64)(size - pos), (u64)skb_tailroom(skb));
		skb_put_data(skb, mem + pos, n);
		rstream_skb_cb(skb)->len += n;
		rstream_skb_cb(skb)->stamp = rs->rxq.stamp;
		at += n;
	}
	if (spare)
		sk_mem_reclaim(rs->sk);
	return at - from;
}

/*
 * How large the window may be: half of TCP's receive buffer, as bytes keep more memory
 * than they are.  TCP makes its buffer larger when much is taken from it in a round trip,
 * and no more is than the program reads.
 */
u64 rstream_window_most(const struct rstream *rs)
{
	/* the end that says HELLO first may send this much before it knows our window */
	u64 least = rs->server || rs->offer.prelude ? RSW_FIRST_WINDOW : SZ_4K;

	return max_t(u64, READ_ONCE(rs->sk->sk_rcvbuf) / 2, least);
}

/* ---- what there is ---- */

/* Where the next byte is that is to be read from the ring; without the lock, too. */
u64 rstream_ring_at(const struct rstream *rs)
{
	u64 base = READ_ONCE(rs->rx.base);

	return max3(base, READ_ONCE(rs->rx.consumed), READ_ONCE(rs->granted.moved)) -
	       base;
}

/* All that the peer will ever send is here. */
bool rstream_ring_ended(const struct rstream *rs)
{
	return rs->rx.fin && rs->rx.arrived == rs->rx.fin_at;
}

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

u64 rstream_ring_ready(const struct rstream *rs)
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
	return lazy + smp_load_acquire(&rs->rxq.bytes) + rstream_ring_ready(rs);
}

/* Is stream offset @at the mark? */
bool rstream_urg_at_mark(const struct rstream *rs, u64 at)
{
	return READ_ONCE(rs->urg.state) && READ_ONCE(rs->urg.at) == at;
}

/* Can the urgent byte be read?  Without the lock, too. */
bool rstream_urg_here(const struct rstream *rs)
{
	return READ_ONCE(rs->urg.state) == RSTREAM_URG_NEW &&
	       rstream_rx_ready(rs) >
	       READ_ONCE(rs->urg.at) - READ_ONCE(rs->rx.consumed);
}

/*
 * Is it as much as SO_RCVLOWAT says?  More than half of what can be here at once
 * is never waited for, nor is memory.  As rstream_rx_ready(), without the lock, too.
 */
bool rstream_rx_enough(const struct rstream *rs)
{
	u64 target = sock_rcvlowat(rs->sk, 0, INT_MAX);
	u64 ready = rstream_rx_ready(rs);
	u64 most;

	if (target <= 1 && !READ_ONCE(rs->urg.state))
		return ready;
	most = rs->rx.state == RSTREAM_ON_RING ? READ_ONCE(rs->granted.size) / 2 :
						 READ_ONCE(rs->rxq.window) / 2;
	target = min(target, max_t(u64, 1, most));
	/* the urgent byte at the mark is no byte to read */
	if (rstream_urg_at_mark(rs, READ_ONCE(rs->rx.consumed)) &&
	    !sock_flag(rs->sk, SOCK_URGINLINE))
		target++;
	/* what is with TCP: its window may be less than that */
	return ready >= target || (ready && READ_ONCE(rs->in.throttled)) ||
	       (READ_ONCE(rs->plain.lazy) && tcp_epollin_ready(rs->sk, target));
}

/* Is there more to read than was signalled?  Without the lock the same may be news twice. */
static bool rx_news(struct rstream *rs)
{
	/* read first: what is taken meanwhile makes the sum smaller, never larger */
	u64 consumed = READ_ONCE(rs->rx.consumed);
	u64 here = consumed + rstream_rx_ready(rs) + READ_ONCE(rs->rx.fin);

	if (here <= READ_ONCE(rs->rxq.told))
		return false;
	WRITE_ONCE(rs->rxq.told, here);
	return true;
}

/*
 * Bytes have arrived, or none will: wake readers if that is what they may wait for.
 * Sleepers look again in any case; SIGIO is sent for new bytes only, not for those that have
 * changed their carrier.
 */
void rstream_wake_readers(struct rstream *rs)
{
	bool over = rstream_urg_here(rs) || rstream_rx_over(rs);

	if (!over && !READ_ONCE(rs->rx.fin) && !rstream_rx_enough(rs))
		return;
	if (rx_news(rs) || over)
		rstream_wake(rs);
	else
		rstream_wake_sleepers(rs);
}
