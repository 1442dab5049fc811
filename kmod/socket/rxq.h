/* SPDX-License-Identifier: GPL-2.0-only */
/* What there is to read. */
#ifndef RSTREAM_RXQ_H
#define RSTREAM_RXQ_H

#include <linux/skbuff.h>

struct rstream;

struct rstream_rxq {
	struct sk_buff_head skbs;	/* with bytes of the stream, see struct rstream_skb_cb */
	struct sk_buff *clone;	/* the last one in @skbs that is a clone of TCP's, or NULL */
	u64 bytes;		/* in @skbs */
	u64 mem;		/* bytes charged for them; until accept() in sk_rmem_alloc, too */
	u64 window;		/* how many bytes the peer may be ahead of the program on tcp */
	u64 signalled;		/* readers were woken for the stream up to here; FIN counts 1 */
	u32 at;			/* tcp_jiffies32 when bytes last arrived */
};

/* In skb->cb: which bytes of the skb are the stream's. */
struct rstream_skb_cb {
	u32 off;
	u32 len;
	u32 charged;	/* bytes of socket memory */
	bool own;	/* not a clone of TCP's: more can be added */
	ktime_t stamp;	/* when the last of them arrived, 0: not known */
};

static inline struct rstream_skb_cb *rstream_skb_cb(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct rstream_skb_cb) > sizeof(skb->cb));
	return (struct rstream_skb_cb *)skb->cb;
}

/* The queue.  Held. */
bool rstream_rxq_charge(struct rstream *rs, u32 size);
u32 rstream_rxq_add(struct rstream *rs, struct sk_buff *skb, u32 off, u32 len);
bool rstream_rxq_add_bytes(struct rstream *rs, const u8 *bytes, u32 len);
u64 rstream_rxq_save(struct rstream *rs, const u8 *mem, u32 size, u64 from, u64 to, bool peek);
void rstream_rxq_drop(struct rstream *rs, struct sk_buff *skb);
void rstream_rxq_free(struct rstream *rs);
u64 rstream_rxq_window_most(const struct rstream *rs);
u64 rstream_rxq_window(struct rstream *rs);

u64 rstream_rxq_ring_ready(const struct rstream *rs);

/* How much there is to read.  Without the lock, too. */
u64 rstream_rxq_ready(const struct rstream *rs);
u64 rstream_rxq_here(const struct rstream *rs);
bool rstream_rxq_enough(const struct rstream *rs);
bool rstream_rxq_over(const struct rstream *rs);
bool rstream_rxq_all_here(const struct rstream *rs);
void rstream_rxq_wake(struct rstream *rs);
void rstream_rxq_wake_news(struct rstream *rs);
u64 rstream_rxq_ring_at(const struct rstream *rs);
bool rstream_rxq_ring_ended(const struct rstream *rs);
bool rstream_rxq_ring_owes(const struct rstream *rs);
bool rstream_rxq_at_mark(const struct rstream *rs, u64 at);
bool rstream_rxq_urg_here(const struct rstream *rs);

#endif
