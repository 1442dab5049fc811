// SPDX-License-Identifier: GPL-2.0-only
/* The TCP option: any options of a header, and any content written. */
#include "fuzz.h"
#include "option.h"
#include "tap.h"

/* "Option" of protocol.rst, byte by byte.  @at: where ours begins, if GOOD. */
static enum rstream_opt_found wanted(const u8 *opts, size_t len, size_t *at)
{
	bool found = false;
	size_t i, step;

	for (i = 0; i < len && opts[i] != 0; i += step) {
		step = 1;
		if (opts[i] == 1)
			continue;
		if (i + 1 == len)
			return RSTREAM_OPT_BAD;
		step = opts[i + 1];
		if (step < 2 || i + step > len)
			return RSTREAM_OPT_BAD;
		if (opts[i] != 254 || step < 4 || opts[i + 2] != 0x52 ||
		    opts[i + 3] != 0x53)
			continue;
		if (found || step != 12 || opts[i + 4] < 0x10 ||
		    (opts[i + 4] & 7) < 1 || (opts[i + 4] & 7) > 3)
			return RSTREAM_OPT_BAD;
		found = true;
		*at = i;
	}
	return found ? RSTREAM_OPT_GOOD : RSTREAM_OPT_NONE;
}

static void check_write(const struct rstream_opt *opt)
{
	const u8 want[] = {
		254, 12, 0x52, 0x53,
		opt->version << 4 | !!opt->prelude << 3 | (opt->role & 7),
		opt->nonce >> 48, opt->nonce >> 40, opt->nonce >> 32,
		opt->nonce >> 24, opt->nonce >> 16, opt->nonce >> 8, opt->nonce
	};
	u8 got[sizeof(want)];

	rstream_option_write(got, opt);
	EXPECT(!memcmp(got, want, sizeof(want)));
}

static void check_find(const u8 *opts, size_t len)
{
	struct fuzz_input nonce = { NULL, 7 };
	struct rstream_opt opt;
	size_t at = 0;

	EXPECT_EQ(rstream_option_find(tap_edge(opts, len), len, &opt),
		  wanted(opts, len, &at));
	if (wanted(opts, len, &at) != RSTREAM_OPT_GOOD)
		return;
	EXPECT_EQ(opt.version, opts[at + 4] >> 4);
	EXPECT_EQ(opt.prelude, opts[at + 4] >> 3 & 1);
	EXPECT_EQ(opt.role, opts[at + 4] & 7);
	nonce.at = opts + at + 5;
	EXPECT_EQ(opt.nonce, fuzz_number(&nonce, 7));
	check_write(&opt);
}

void fuzz_option(const u8 *data, size_t len)
{
	struct fuzz_input in = { data, len };
	struct rstream_opt opt;

	opt.version = fuzz_byte(&in) & 15;
	opt.role = fuzz_byte(&in);
	opt.prelude = fuzz_byte(&in);
	opt.nonce = fuzz_number(&in, 8);
	check_write(&opt);
	check_find(in.at, in.len);
}
