/* SPDX-License-Identifier: GPL-2.0-only */
/* The transmit queue, from which the carriers take. */
#ifndef RSTREAM_TXQ_H
#define RSTREAM_TXQ_H

#include <linux/list.h>
#include <linux/types.h>

#include "base/stats.h"

struct rstream;
struct rstream_frag;

/* Does a writer, which has found no room, wait? */
enum rstream_txq_asked {
	RSTREAM_ROOM_UNASKED,
	RSTREAM_ROOM_ASKED,	/* it is to be woken */
	RSTREAM_ROOM_SIGIO,	/* likewise, and the socket's owner gets SIGIO */
};

struct rstream_txq {
	struct list_head frags;	/* struct rstream_frag, bytes not yet handed to a carrier */
	u64 mem;		/* bytes in @frags and those in flight on a ring, charged */
	u64 cost;		/* charged for these frags themselves, bytes */
	u64 reap_at;		/* @mem at which a writer calls rstream_ring_reap() */
	unsigned long at;	/* jiffies when bytes were last given to a carrier */
	unsigned long corked_at;	/* queued bytes wait for more, the oldest since then: odd
					 * jiffies; 0: they don't.  See rstream_txq_cork()
					 */
	unsigned long scarce_until;	/* a writer has found no memory, and waits until then: odd
					 * jiffies; 0: it doesn't
					 */
	u8 asked;		/* enum rstream_txq_asked */
};

/* Held. */
size_t rstream_txq_schedule(struct rstream *rs, size_t n, unsigned int frags);
void rstream_txq_queued(struct rstream *rs, struct rstream_frag *frag, size_t n,
			enum rstream_mib_item how);
void rstream_txq_gone(struct rstream *rs, size_t n, size_t cost);
void rstream_txq_drop(struct rstream *rs);	/* drop what no carrier has */
void rstream_txq_free(struct rstream *rs);	/* also uncharge what the link has in flight */
bool rstream_txq_done(struct rstream *rs);

/* Holding back bytes. */
void rstream_txq_cork(struct rstream *rs, bool more);
void rstream_txq_cork_look(struct rstream *rs);
u64 rstream_txq_autocork_max(const struct rstream *rs);
bool rstream_txq_may_autocork(const struct rstream *rs, u64 queued);

/* Room.  Without the lock, too. */
u64 rstream_txq_limit(const struct rstream *rs);
u64 rstream_txq_used(const struct rstream *rs);
u64 rstream_txq_unsent(const struct rstream *rs);
bool rstream_txq_room(const struct rstream *rs);
void rstream_txq_ask_tcp(struct rstream *rs);
void rstream_txq_ask_room(struct rstream *rs);
void rstream_txq_unask_sigio(struct rstream *rs);	/* held */
void rstream_txq_wake(struct rstream *rs);	/* held */

#endif
