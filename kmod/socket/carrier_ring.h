/* SPDX-License-Identifier: GPL-2.0-only */
/* Rings: granted, taken up, written and read. */
#ifndef RSTREAM_CARRIER_RING_H
#define RSTREAM_CARRIER_RING_H

#include <linux/types.h>

#include "base/stats.h"
#include "link/link.h"
#include "protocol/record.h"

struct rstream;

/* The ring that we granted, and how large the next one is to be. */
struct rstream_granted {
	struct rstream_record rec;	/* its GRANT, while it is wanted */
	u32 link;		/* id of its link; a copy for rsctl, read locklessly */
	u32 size;		/* bytes, likewise */
	u64 credited;		/* bytes whose consumption the sender has been told */
	u64 moved;		/* stream offset up to which ring bytes were moved to rxq */
	u64 landed;		/* that of the ring as the last callback of the link saw it */
	u32 next;		/* bytes of the next ring, 0: the first */
	u8 fills;		/* how often the ring was half full and then read to its end */
	unsigned long filled_at;	/* jiffies when that was last; not tried before */
	bool filled;		/* it was half full and has not been read to its end since */
	bool end_told;		/* the sender was told of the credit at the end of its stream */
	bool full;		/* rxq has more than the window: no ring until that is read */
	bool link_asked;	/* the peer, who makes the links, has been asked for one */
};

/* Pages of the ring that we granted, which pipes have. */
struct rstream_loan {
	struct rstream_lent wait;	/* for one of them */
	u64 to;			/* ring offset behind the last byte that was lent */
	u64 first;		/* ring offset of the first of them when it was last looked at */
	unsigned long since;	/* when the sender began to wait, jiffies; 0: it doesn't */
};

/* The ring that we write to. */
struct rstream_taken {
	u32 link, size;		/* as of the one that we granted */
	u64 heard;		/* bytes that had come when we last sent on it */
	u64 asked_with;		/* ring offset that was credited when it was last asked for */
	unsigned long asked_at;	/* jiffies then */
	bool asked;		/* an interrupting credit was asked for and has not come */
	int routes;		/* rstream_routes_genid() when @route was found */
	struct dst_entry *route;	/* that was found to be unprotected last; a reference */
};

/* All with the socket held, if nothing else is said. */
void rstream_link_wanted(struct rstream *rs);
void rstream_link_want_more(struct rstream *rs);
void rstream_link_try(struct rstream *rs);
void rstream_link_asked(struct rstream *rs);
void rstream_peer_fill(struct rstream *rs, const u8 *instance);

/* receiving end */
void rstream_no_ring(struct rstream *rs, enum rstream_reason why);	/* any context */
void rstream_grant_try(struct rstream *rs);
void rstream_grant_look(struct rstream *rs);
enum rstream_reason rstream_switch_got(struct rstream *rs, const struct rstream_record *rec);
void rstream_ring_landed(struct rstream *rs);
void rstream_ring_closing(struct rstream *rs);
void rstream_ring_read(struct rstream *rs, size_t len);
void rstream_ring_answer(struct rstream *rs);
void rstream_ring_idle(struct rstream *rs);
void rstream_ring_relocate(struct rstream *rs);
void rstream_lent_init(struct rstream *rs);
void rstream_lent_hurry(struct rstream *rs);
void rstream_lent_end(struct rstream *rs);

/* sending end */
enum rstream_reason rstream_grant_got(struct rstream *rs, const struct rstream_record *rec);
u64 rstream_switch_proof(const struct rstream *rs, const struct rstream_record *rec);
void rstream_ring_push(struct rstream *rs);
void rstream_ring_yield(struct rstream *rs);
bool rstream_ring_autocorks(const struct rstream *rs);
void rstream_tx_waits(struct rstream *rs);
size_t rstream_tx_reap(struct rstream *rs);

void rstream_rings_close(struct rstream *rs);

#endif
