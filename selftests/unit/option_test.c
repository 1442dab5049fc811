// SPDX-License-Identifier: GPL-2.0-only
/* The TCP option: writing it, and finding it in all kinds of TCP headers. */
#include "option.h"
#include "tap.h"

#define OPTS_MAX	40	/* a TCP header's options, RFC 9293, 3.1 */

#define END	0
#define PAD	1

#define NONCE	0xabcdef98765432

static const u8 ours[RSW_OPT_LEN] = {
	254, 12, 0x52, 0x53, 0x11, 0xab, 0xcd, 0xef, 0x98, 0x76, 0x54, 0x32
};

static enum rstream_opt_found find(const u8 *opts, unsigned int len,
				   struct rstream_opt *opt)
{
	memset(opt, 0, sizeof(*opt));
	return rstream_option_find(tap_edge(opts, len), len, opt);
}

/* Result of parsing ours[] with one byte changed. */
static enum rstream_opt_found find_changed(unsigned int at, u8 value)
{
	struct rstream_opt opt;
	u8 opts[RSW_OPT_LEN];

	memcpy(opts, ours, sizeof(opts));
	opts[at] = value;
	return find(opts, sizeof(opts), &opt);
}

TEST(option__write_layout)
{
	struct rstream_opt opt = {
		.version = 1, .role = RSW_ROLE_SYN, .nonce = NONCE
	};
	u8 *to = tap_edge(ours, RSW_OPT_LEN);

	memset(to, 0, RSW_OPT_LEN);
	rstream_option_write(to, &opt);
	EXPECT(!memcmp(to, ours, RSW_OPT_LEN));
}

TEST(option__write_keeps_fields_apart)
{
	struct rstream_opt opt = {
		.version = 15, .role = 0xf2, .prelude = true,
		.nonce = 0xff00000000000001
	};
	u8 to[RSW_OPT_LEN];

	rstream_option_write(to, &opt);
	EXPECT_EQ(to[4], 0xfa);
	EXPECT_EQ(to[5], 0);
	EXPECT_EQ(to[8], 0);
	EXPECT_EQ(to[11], 1);
}

TEST(option__every_role_and_version)
{
	struct rstream_opt in, out;
	u8 raw[RSW_OPT_LEN], nibble;
	bool good;

	for (in.version = 0; in.version < 16; in.version++) {
		for (nibble = 0; nibble < 16; nibble++) {
			in.role = nibble & 7;
			in.prelude = !!(nibble & RSW_OPT_PRELUDE);
			in.nonce = 0x1020304050607 * in.role;
			rstream_option_write(raw, &in);
			good = in.version && in.role >= RSW_ROLE_SYN &&
			       in.role <= RSW_ROLE_CONFIRM;
			EXPECT_EQ(find(raw, sizeof(raw), &out),
				  good ? RSTREAM_OPT_GOOD : RSTREAM_OPT_BAD);
			if (!good)
				continue;
			EXPECT_EQ(out.version, in.version);
			EXPECT_EQ(out.role, in.role);
			EXPECT_EQ(out.prelude, in.prelude);
			EXPECT_EQ(out.nonce, in.nonce);
		}
	}
}

TEST(option__find_nothing)
{
	static const u8 usual[] = {	/* MSS, SACK, timestamps, scaling */
		2, 4, 0x05, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0,
		PAD, 3, 3, 7
	};
	struct rstream_opt opt;

	EXPECT_EQ(find(usual, 0, &opt), RSTREAM_OPT_NONE);
	EXPECT_EQ(find(usual, sizeof(usual), &opt), RSTREAM_OPT_NONE);
}

TEST(option__find_at_every_position)
{
	u8 opts[OPTS_MAX];
	struct rstream_opt opt;
	unsigned int at;

	for (at = 0; at <= OPTS_MAX - RSW_OPT_LEN; at++) {
		memset(opts, PAD, sizeof(opts));
		memcpy(opts + at, ours, sizeof(ours));
		EXPECT_EQ(find(opts, OPTS_MAX, &opt), RSTREAM_OPT_GOOD);
		EXPECT_EQ(opt.nonce, NONCE);
		EXPECT_EQ(find(opts, at + RSW_OPT_LEN, &opt), RSTREAM_OPT_GOOD);
	}
}

TEST(option__find_after_others)
{
	u8 opts[OPTS_MAX];
	struct rstream_opt opt;
	unsigned int len;

	for (len = 2; len <= OPTS_MAX - RSW_OPT_LEN; len++) {
		memset(opts, 0xff, sizeof(opts));
		opts[0] = 8;
		opts[1] = len;
		memcpy(opts + len, ours, sizeof(ours));
		EXPECT_EQ(find(opts, len + RSW_OPT_LEN, &opt),
			  RSTREAM_OPT_GOOD);
	}
}

TEST(option__find_not_inside_another)
{
	u8 opts[2 + RSW_OPT_LEN] = { 8, sizeof(opts) };
	struct rstream_opt opt;

	memcpy(opts + 2, ours, sizeof(ours));
	EXPECT_EQ(find(opts, sizeof(opts), &opt), RSTREAM_OPT_NONE);
}

TEST(option__find_stops_at_end)
{
	u8 opts[1 + RSW_OPT_LEN] = { END };
	struct rstream_opt opt;

	memcpy(opts + 1, ours, sizeof(ours));
	EXPECT_EQ(find(opts, sizeof(opts), &opt), RSTREAM_OPT_NONE);
	memcpy(opts, ours, sizeof(ours));
	opts[RSW_OPT_LEN] = END;
	EXPECT_EQ(find(opts, sizeof(opts), &opt), RSTREAM_OPT_GOOD);
}

TEST(option__find_ignores_what_follows_end)
{
	u8 opts[RSW_OPT_LEN + 3];
	struct rstream_opt opt;

	memcpy(opts, ours, sizeof(ours));
	memcpy(opts + RSW_OPT_LEN, (u8[]){ END, 254, 0 }, 3);
	EXPECT_EQ(find(opts, sizeof(opts), &opt), RSTREAM_OPT_GOOD);
}

TEST(option__truncated)
{
	struct rstream_opt opt;
	unsigned int len;

	for (len = 1; len < RSW_OPT_LEN; len++)
		EXPECT_EQ(find(ours, len, &opt), RSTREAM_OPT_BAD);
}

TEST(option__any_option_truncated)
{
	u8 opts[OPTS_MAX];
	struct rstream_opt opt;

	memset(opts, PAD, sizeof(opts));
	opts[OPTS_MAX - 1] = 8;			/* kind without a length */
	EXPECT_EQ(find(opts, OPTS_MAX, &opt), RSTREAM_OPT_BAD);
	opts[OPTS_MAX - 2] = 8;
	opts[OPTS_MAX - 1] = 3;			/* one byte too long */
	EXPECT_EQ(find(opts, OPTS_MAX, &opt), RSTREAM_OPT_BAD);
	opts[OPTS_MAX - 1] = 2;
	EXPECT_EQ(find(opts, OPTS_MAX, &opt), RSTREAM_OPT_NONE);
	opts[OPTS_MAX - 1] = 1;			/* shorter than its header */
	EXPECT_EQ(find(opts, OPTS_MAX, &opt), RSTREAM_OPT_BAD);
	opts[OPTS_MAX - 1] = 0;
	EXPECT_EQ(find(opts, OPTS_MAX, &opt), RSTREAM_OPT_BAD);
}

TEST(option__malformed_after_ours)
{
	u8 opts[RSW_OPT_LEN + 2];
	struct rstream_opt opt;

	memcpy(opts, ours, sizeof(ours));
	opts[RSW_OPT_LEN] = 8;
	opts[RSW_OPT_LEN + 1] = 10;
	EXPECT_EQ(find(opts, sizeof(opts), &opt), RSTREAM_OPT_BAD);
}

TEST(option__doubled)
{
	u8 opts[2 * RSW_OPT_LEN + 1];
	struct rstream_opt opt;

	memcpy(opts, ours, sizeof(ours));
	opts[RSW_OPT_LEN] = PAD;
	memcpy(opts + RSW_OPT_LEN + 1, ours, sizeof(ours));
	EXPECT_EQ(find(opts, sizeof(opts), &opt), RSTREAM_OPT_BAD);
	EXPECT_EQ(find(opts, RSW_OPT_LEN + 1, &opt), RSTREAM_OPT_GOOD);
}

TEST(option__wrong_length)
{
	u8 opts[OPTS_MAX];
	struct rstream_opt opt;
	unsigned int len;

	for (len = 4; len <= OPTS_MAX; len++) {
		memset(opts, PAD, sizeof(opts));
		memcpy(opts, ours, sizeof(ours));
		opts[1] = len;
		EXPECT_EQ(find(opts, OPTS_MAX, &opt), len == RSW_OPT_LEN ?
			  RSTREAM_OPT_GOOD : RSTREAM_OPT_BAD);
	}
}

TEST(option__nothing_after_the_exid)
{
	struct rstream_opt opt;

	EXPECT_EQ(find((u8[]){ 254, 4, 0x52, 0x53 }, 4, &opt),
		  RSTREAM_OPT_BAD);
}

TEST(option__too_short_for_an_exid)
{
	struct rstream_opt opt;
	u8 opts[] = { 254, 2, 254, 3, 0x52, PAD };

	EXPECT_EQ(find(opts, sizeof(opts), &opt), RSTREAM_OPT_NONE);
	EXPECT_EQ(find(opts, 5, &opt), RSTREAM_OPT_NONE);
}

TEST(option__other_experiments)
{
	unsigned int bit;

	for (bit = 0; bit < 8; bit++) {
		EXPECT_EQ(find_changed(2, ours[2] ^ 1 << bit),
			  RSTREAM_OPT_NONE);
		EXPECT_EQ(find_changed(3, ours[3] ^ 1 << bit),
			  RSTREAM_OPT_NONE);
	}
	EXPECT_EQ(find_changed(0, 253), RSTREAM_OPT_NONE);
}

TEST(option__other_experiment_next_to_ours)
{
	u8 opts[2 * RSW_OPT_LEN];
	struct rstream_opt opt;

	memcpy(opts, ours, sizeof(ours));
	opts[3]++;
	memcpy(opts + RSW_OPT_LEN, ours, sizeof(ours));
	EXPECT_EQ(find(opts, sizeof(opts), &opt), RSTREAM_OPT_GOOD);
	EXPECT_EQ(opt.nonce, NONCE);
}

TEST(option__version_zero)
{
	EXPECT_EQ(find_changed(4, 0x01), RSTREAM_OPT_BAD);
}
