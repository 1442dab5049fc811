// SPDX-License-Identifier: GPL-2.0-only
/*
 * How large the rings of a stream are.  A ring is too small if its sender had to wait although the
 * program read all there was: if it was half full and then emptied FILLS times, each time within
 * FILL_MS of the last.  Pure.
 */
#include "growth.h"

#define GROWTH	8	/* the next ring is larger by this factor */
#define FILLS	4
#define FILL_MS	10000

/* Starts to count again, for another ring. */
void rstream_growth_granted(struct rstream_growth *growth)
{
	growth->fills = 0;
	growth->filled = false;
}

/* Return: size of the next ring, bytes.  @most: that it may have */
u32 rstream_growth_size(const struct rstream_growth *growth, u32 most)
{
	return min_t(u32, growth->next ?: RSTREAM_GROWTH_FIRST, most);
}

/* Return: size of a ring that is to be larger than @size, bytes.  @most: that it may have */
u32 rstream_growth_larger(u32 size, u32 most)
{
	return min_t(u64, (u64)size * GROWTH, most);
}

/*
 * The program has read all of a ring of @size bytes.
 * @most: bytes that a ring of this stream may have
 * @now:  ms
 * Return: bytes that it should have instead; 0: it is large enough, as far as we know
 */
u32 rstream_growth_emptied(struct rstream_growth *growth, u32 size, u32 most, u64 now)
{
	if (!growth->filled || most <= size)
		return 0;
	growth->filled = false;
	if (now < growth->at)
		return 0;
	if (now - growth->at > FILL_MS)
		growth->fills = 0;
	growth->at = now;
	if (growth->fills < FILLS - 1) {
		growth->fills++;
		return 0;
	}
	return rstream_growth_larger(size, most);
}

/* The larger one could not be paid for: not for a while. */
void rstream_growth_failed(struct rstream_growth *growth, u64 now)
{
	growth->at = now + FILL_MS;
}
