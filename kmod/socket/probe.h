/* SPDX-License-Identifier: GPL-2.0-only */
/* Is the peer still there? */
#ifndef RSTREAM_PROBE_H
#define RSTREAM_PROBE_H

#include <linux/types.h>

struct rstream;

/* What was sent waits for a sign of the peer: any byte or credit. */
struct rstream_probe {
	unsigned long at;	/* jiffies, next probe */
	u32 ms;			/* time from the last one to the next; 0: nothing waits */
	u64 sign;		/* grows with each sign, see probe.c */
	u64 sent;		/* tx.sent at the last probe */
	u64 held;		/* tx.sent + 1 when the peer had no room for more; 0: it has */
	unsigned long held_at;	/* jiffies when this was noticed */
};

/* With the socket held, at the beginning and at the end of a flush. */
void rstream_probe_due(struct rstream *rs);
void rstream_probe_later(struct rstream *rs, bool held);

#endif
