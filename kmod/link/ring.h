/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shared by rxring.c (receiving end), txring.c (sending end), msg.c and sched.c.
 * All with link->lock held unless noted.
 */
#ifndef RSTREAM_RING_H
#define RSTREAM_RING_H

#include "rmb.h"

enum rstream_due {
	DUE_CREDIT = 1,		/* receiver: write the cell */
	DUE_INTR = 2,		/* ... and interrupt the sender */
	DUE_FREED = 4,		/* receiver: answer DONE, after all its credits */
	DUE_DONE = 8,		/* sender: no more writes, after all its writes */
	DUE_ASK = 16,		/* sender: ask for an interrupting credit */
};

/* Control messages of a ring that wait to be posted. */
struct ring_ctrl {
	struct list_head list;		/* link->msg.waiting, or msg.no_credit if @no_credit */
	unsigned int due;		/* enum rstream_due */
	u64 last_sq;			/* number of the ring's last work request */
	bool tx;			/* of a tx_ring */
	bool no_credit;			/* only a receive credit is missing */
};

struct rx_ring {
	struct rstream_rxring pub;
	struct rstream *rs;		/* NULL: released */
	struct ring_ctrl ctrl;
	struct rstream_rmb_block block;
	u64 consumed;			/* bytes, newest value from the stream */
	u64 credited;			/* bytes, newest value that was posted */
	u64 cell_addr;
	u32 cell_rkey;
	u32 peer_ring;
	bool switched;
	bool done;			/* DONE has arrived: the peer writes no more */
	u64 swept;			/* pub.landed at the last sweep */
	unsigned long busy_at;		/* jiffies, start of the current idle time */
	struct rcu_head rcu;
};

struct tx_ring {
	struct rstream_txring pub;
	struct rstream *rs;		/* NULL: closed */
	struct ring_ctrl ctrl;
	struct rstream_rmb_block cell;	/* none if the grant was refused, or the link is DEAD */
	__be64 last[2];			/* copy of the cell, if the link is DEAD */
	struct list_head waiter;	/* link->sched.waiters */
	struct list_head sched_node;	/* link->sched.scheduled */
	unsigned long turn_at;		/* jiffies when it was scheduled */
	bool turn_lost;			/* its turn ended before it could post */
	struct list_head busy;		/* link->tx.busy */
	struct list_head sent;		/* link->tx.sent */
	struct list_head zombie;	/* link->tx.zombies, once closed */
	struct list_head ending;	/* link->tx.ending, once DONE is posted */
	struct list_head flight;	/* frags posted */
	u32 peer_ring;
	u32 rkey;
	u64 raddr;
	u64 acked;			/* bytes, last good value of the cell */
	u64 reusable;			/* bytes, lower bound, see tx_reusable_for() */
	u64 notify_sq;			/* number of the request that pub.notify refers to */
	bool notify_all;			/* call ops->space() when all has completed */
	bool freed;			/* FREED has arrived: the peer writes no more credits */
	unsigned int owed_at;		/* link->probe.sweeps when DONE became due, then FREED */
};

static inline struct tx_ring *to_tx(struct rstream_txring *ring)
{
	return container_of(ring, struct tx_ring, pub);
}

/* msg.c: posts a signalled request, whose completion covers the unsignalled ones before it. */
void rstream_msg_signal(struct rstream_link *link);
/* Posts a message of no ring_ctrl.  Return: false if there is no slot or credit. */
bool rstream_msg_say(struct rstream_link *link, enum rstream_imm_type type, u32 id);
/* Posts what is due, now or later.  Return: false if something is left for later. */
bool rstream_msg_flush(struct rstream_link *link, struct ring_ctrl *ctrl);

/* rxring.c: messages for the receiving end */
void rstream_rxring_data(struct rstream_link *link, u32 id, u32 len, bool want);
void rstream_rxring_done(struct rstream_link *link, u32 id);
/* Nothing of @ring is due any more.  May free it. */
void rstream_rxring_said(struct rx_ring *ring);
/* The link is DEAD, so nothing is written any more: frees receiving ends without a stream. */
void rstream_rxring_abandon(struct rstream_link *link);

/* txring.c: messages for the sending end */
void rstream_txring_credit(struct rstream_link *link, u32 id);
void rstream_txring_freed(struct rstream_link *link, u32 id);

/* sched.c: return the bytes that @ring, which has @queued, may post now */
u64 rstream_sched_budget(const struct tx_ring *ring, u64 queued);
/* Queues @ring, at the head if it is @first, until rstream_sched_next() picks it. */
void rstream_sched_wait(struct tx_ring *ring, bool first);
void rstream_sched_wait_end(struct tx_ring *ring);
/* Schedules rings from the head of the queue, as many as slots, credits and bytes allow. */
void rstream_sched_next(struct rstream_link *link);
void rstream_sched_turn_work(struct work_struct *work);
/* A scheduled ring has posted what it could, or has nothing to post; @next: schedule the next. */
void rstream_sched_yield(struct tx_ring *ring, bool next);

/* txring.c: the slab of frags, without the lock */
int rstream_frag_init(void);
void rstream_frag_exit(void);

#endif
