// SPDX-License-Identifier: GPL-2.0-only
/* When is a ring too small? */
#include "growth.h"
#include "tap.h"

#define K	1024U
#define SECOND	1000ULL

/* The ring is half full, and emptied at @now. */
static u32 once(struct rstream_growth *g, u32 size, u32 most, u64 now)
{
	rstream_growth_landed(g, size / 2, size);
	return rstream_growth_emptied(g, size, most, now);
}

TEST(growth__size)
{
	struct rstream_growth g = {};

	EXPECT_EQ(rstream_growth_size(&g, 1024 * K), 32 * K);
	EXPECT_EQ(rstream_growth_size(&g, 16 * K), 16 * K);
	g.next = 256 * K;
	EXPECT_EQ(rstream_growth_size(&g, 1024 * K), 256 * K);
	EXPECT_EQ(rstream_growth_size(&g, 64 * K), 64 * K);
}

TEST(growth__fourth_time)
{
	struct rstream_growth g = {};

	for (int i = 1; i <= 3; i++)
		EXPECT_EQ(once(&g, 32 * K, 1024 * K, i), 0);
	EXPECT_EQ(once(&g, 32 * K, 1024 * K, 4), 256 * K);
	/* asked again, if the caller could not act on it */
	EXPECT_EQ(once(&g, 32 * K, 1024 * K, 5), 256 * K);
}

TEST(growth__up_to_the_most)
{
	struct rstream_growth g = { .fills = 4 };

	EXPECT_EQ(once(&g, 32 * K, 256 * K, 1), 256 * K);
	EXPECT_EQ(once(&g, 32 * K, 128 * K, 2), 128 * K);
	EXPECT_EQ(once(&g, 1U << 30, 1U << 31, 3), 1U << 31);	/* 8 times that is too much for u32 */
	EXPECT_EQ(once(&g, 256 * K, 256 * K, 4), 0);
	EXPECT_EQ(once(&g, 256 * K, 128 * K, 5), 0);
}

TEST(growth__not_half_full)
{
	struct rstream_growth g = { .fills = 4 };

	rstream_growth_landed(&g, 16 * K - 1, 32 * K);
	EXPECT_EQ(rstream_growth_emptied(&g, 32 * K, 1024 * K, 1), 0);
	EXPECT_EQ(once(&g, 32 * K, 1024 * K, 2), 256 * K);
	/* emptied twice, filled once */
	EXPECT_EQ(rstream_growth_emptied(&g, 32 * K, 1024 * K, 3), 0);
}

TEST(growth__in_time)
{
	struct rstream_growth g = {};

	for (int i = 1; i <= 3; i++)
		EXPECT_EQ(once(&g, 32 * K, 1024 * K, i * 10 * SECOND), 0);
	EXPECT_EQ(once(&g, 32 * K, 1024 * K, 40 * SECOND), 256 * K);
	rstream_growth_granted(&g);
	for (int i = 1; i <= 8; i++)
		EXPECT_EQ(once(&g, 32 * K, 1024 * K, 50 * SECOND + i * (10 * SECOND + 1)), 0);
	/* the last one was the first of four */
	EXPECT_EQ(once(&g, 32 * K, 1024 * K, 131 * SECOND), 0);
	EXPECT_EQ(once(&g, 32 * K, 1024 * K, 132 * SECOND), 0);
	EXPECT_EQ(once(&g, 32 * K, 1024 * K, 133 * SECOND), 256 * K);
}

TEST(growth__counts_anew)
{
	struct rstream_growth g = {};

	for (int i = 1; i <= 3; i++)
		EXPECT_EQ(once(&g, 32 * K, 1024 * K, i), 0);
	rstream_growth_landed(&g, 32 * K, 32 * K);
	rstream_growth_granted(&g);
	EXPECT_EQ(rstream_growth_emptied(&g, 32 * K, 1024 * K, 4), 0);
	for (int i = 5; i <= 7; i++)
		EXPECT_EQ(once(&g, 32 * K, 1024 * K, i), 0);
	EXPECT_EQ(once(&g, 32 * K, 1024 * K, 8), 256 * K);
}

TEST(growth__failed)
{
	struct rstream_growth g = { .fills = 4 };

	EXPECT_EQ(once(&g, 32 * K, 1024 * K, 1 * SECOND), 256 * K);
	rstream_growth_failed(&g, 1 * SECOND);
	EXPECT_EQ(once(&g, 32 * K, 1024 * K, 11 * SECOND - 1), 0);
	EXPECT_EQ(once(&g, 32 * K, 1024 * K, 11 * SECOND), 256 * K);
}
