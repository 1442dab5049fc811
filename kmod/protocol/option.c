// SPDX-License-Identifier: GPL-2.0-only
/*
 * Encodes and decodes the TCP option.  Pure: no state, no kernel service; called for
 * every segment that may carry the option, and by unit tests in user space.
 */
#include "option.h"

#ifdef __KERNEL__
#include <linux/string.h>
#endif

#define TCPOPT_END	0	/* RFC 9293, 3.2 */
#define TCPOPT_PAD	1

void rstream_option_write(__u8 *to, const struct rstream_opt *opt)
{
	struct rsw_option raw = {
		.kind = RSW_OPT_KIND,
		.len = RSW_OPT_LEN,
		.exid = cpu_to_be16(RSW_OPT_EXID),
		.vrn = cpu_to_be32((__u32)opt->version << 28 |
				   (__u32)(opt->role & 7) << 24 |
				   (opt->prelude ? RSW_OPT_PRELUDE << 24 : 0) |
				   (opt->nonce & RSW_NONCE_MASK) >> 32),
		.nonce = cpu_to_be32((__u32)opt->nonce),
	};

	memcpy(to, &raw, sizeof(raw));
}

/* Does the option at @at, which has kind RSW_OPT_KIND, have our experiment id? */
static bool is_ours(const __u8 *at)
{
	return at[1] >= 4 && at[2] == RSW_OPT_EXID >> 8 && at[3] == (RSW_OPT_EXID & 0xff);
}

static bool read_one(const __u8 *at, struct rstream_opt *opt)
{
	struct rsw_option raw;
	__u32 vrn;

	if (at[1] != RSW_OPT_LEN)
		return false;
	memcpy(&raw, at, sizeof(raw));
	vrn = be32_to_cpu(raw.vrn);
	opt->version = vrn >> 28;
	opt->role = vrn >> 24 & 7;
	opt->prelude = !!(vrn >> 24 & RSW_OPT_PRELUDE);
	opt->nonce = (__u64)(vrn & 0xffffff) << 32 | be32_to_cpu(raw.nonce);
	return opt->version >= 1 && opt->role >= RSW_ROLE_SYN &&
	       opt->role <= RSW_ROLE_CONFIRM;
}

enum rstream_opt_found rstream_option_find(const __u8 *opts, unsigned int len,
					   struct rstream_opt *opt)
{
	enum rstream_opt_found found = RSTREAM_OPT_NONE;
	const __u8 *at = opts, *end = opts + len;

	while (at < end && *at != TCPOPT_END) {
		if (*at == TCPOPT_PAD) {
			at++;
			continue;
		}
		if (end - at < 2 || at[1] < 2 || at[1] > end - at)
			return RSTREAM_OPT_BAD;
		if (*at == RSW_OPT_KIND && is_ours(at)) {
			if (found != RSTREAM_OPT_NONE || !read_one(at, opt))
				return RSTREAM_OPT_BAD;
			found = RSTREAM_OPT_GOOD;
		}
		at += at[1];
	}
	return found;
}
