/* SPDX-License-Identifier: GPL-2.0-only */
/* Rings: granting, taking up, writing and reading. */
#ifndef RSTREAM_CARRIER_RING_H
#define RSTREAM_CARRIER_RING_H

#include <linux/ktime.h>
#include <linux/types.h>

#include "base/stats.h"
#include "link/link.h"
#include "protocol/growth.h"
#include "protocol/record.h"

struct rstream;

/* The ring that we granted. */
struct rstream_granted {
	struct rstream_record rec;	/* its GRANT; type 0: sent, see rstream_grant_sent() */
	u32 link;		/* id of its link; a copy for rsctl, read locklessly */
	u32 size;		/* bytes, likewise */
	u64 credited;		/* bytes credited to the sender */
	u64 moved;		/* stream offset up to which ring bytes were moved to rxq */
	u64 looked;		/* rx.consumed + 1 when a program last looked at all that was here
				 * without reading it, and a full ring kept more away; 0: never
				 */
	u64 landed;		/* ring->landed at the link's last callback */
	ktime_t stamp;		/* when these arrived, if the program wants to know; 0: not known */
	struct rstream_growth growth;	/* how large the next one is to be */
	u8 refused;		/* grants in a row that were impossible or refused */
	bool end_credited;		/* credit_all() has credited everything */
	bool full;		/* rxq has more than the window: no ring until that is read */
	unsigned long link_asked;	/* jiffies | 1 when the peer, which makes the links, was
					 * asked for one; 0: it was not, or has tried since
					 */
};

/* Has the GRANT left?  Before that, no answer to it can be valid. */
static inline bool rstream_grant_sent(const struct rstream_granted *granted)
{
	return !granted->rec.type;
}

/* The ring that we write to. */
struct rstream_taken {
	u32 link, size;		/* as in struct rstream_granted */
	u64 heard;		/* rx.arrived when we last posted to it */
	u64 asked_with;		/* ring bytes credited when we last asked for credit */
	unsigned long asked_at;	/* jiffies then */
	bool asked;		/* a credit that interrupts was requested, but has not arrived */
};

/* All with the socket held, unless stated otherwise. */
void rstream_ring_want_more_links(struct rstream *rs);
void rstream_ring_try_link(struct rstream *rs);
void rstream_ring_link_asked(struct rstream *rs);

/* receiving end */
void rstream_ring_impossible(struct rstream *rs, enum rstream_reason why);	/* any context */
void rstream_ring_grant_try(struct rstream *rs);
void rstream_ring_grant_look(struct rstream *rs);
void rstream_ring_grant_later(struct rstream *rs);
enum rstream_reason rstream_ring_switch_got(struct rstream *rs, const struct rstream_record *rec);
void rstream_ring_landed(struct rstream *rs);
void rstream_ring_read(struct rstream *rs, size_t len);
void rstream_ring_looked(struct rstream *rs, bool waits);
void rstream_ring_look_again(struct rstream *rs);
void rstream_ring_answer(struct rstream *rs);
void rstream_ring_idle(struct rstream *rs);
void rstream_ring_relocate(struct rstream *rs);
void rstream_ring_drop(struct rstream *rs);

/* sending end */
enum rstream_reason rstream_ring_grant_got(struct rstream *rs, const struct rstream_record *rec);
u64 rstream_ring_switch_proof(const struct rstream *rs, const struct rstream_record *rec);
void rstream_ring_push(struct rstream *rs);
void rstream_ring_yield(struct rstream *rs);
bool rstream_ring_autocorks(const struct rstream *rs);
void rstream_ring_waits(struct rstream *rs);
size_t rstream_ring_reap(struct rstream *rs);

void rstream_ring_close(struct rstream *rs);

#endif
