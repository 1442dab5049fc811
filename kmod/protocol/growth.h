/* SPDX-License-Identifier: GPL-2.0-only */
/* How large the rings of a stream are: when is one too small?  Pure. */
#ifndef RSTREAM_GROWTH_H
#define RSTREAM_GROWTH_H

#ifdef __KERNEL__
#include <linux/minmax.h>
#include <linux/types.h>
#else
#include "host.h"
#endif

#define RSTREAM_GROWTH_FIRST	32768	/* size of a stream's first ring, bytes */

/**
 * struct rstream_growth - history of a stream's rings
 * @at:		ms when the ring was last half full and then emptied; if later than now, when it may
 *		grow again
 * @next:	size of the next ring, bytes; 0: that of a first one
 * @fills:	how often in a row it was half full and then emptied
 * @filled:	it was half full and has not been emptied since
 */
struct rstream_growth {
	u64 at;
	u32 next;
	u8 fills;
	bool filled;
};

void rstream_growth_granted(struct rstream_growth *growth);
u32 rstream_growth_size(const struct rstream_growth *growth, u32 most);
u32 rstream_growth_larger(u32 size, u32 most);
u32 rstream_growth_emptied(struct rstream_growth *growth, u32 size, u32 most, u64 now);
void rstream_growth_failed(struct rstream_growth *growth, u64 now);

/* Of a ring of @size bytes, @unread wait to be read. */
static inline void rstream_growth_landed(struct rstream_growth *growth, u64 unread, u32 size)
{
	if (unread >= size / 2)
		growth->filled = true;
}

#endif
