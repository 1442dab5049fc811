/* SPDX-License-Identifier: GPL-2.0-only */
/* The TCP option as bytes: written and found.  Pure. */
#ifndef RSTREAM_OPTION_H
#define RSTREAM_OPTION_H

#include "wire.h"

/* What was found of our option in a TCP header. */
enum rstream_opt_found {
	RSTREAM_OPT_NONE,
	RSTREAM_OPT_GOOD,
	RSTREAM_OPT_BAD,	/* malformed options, or ours twice */
};

/**
 * struct rstream_opt - the option's content
 * @version: 1 to 15
 * @role: enum rsw_role
 * @prelude: 1: the connection begins without records, 0: it does not
 * @nonce: 56 bits
 */
struct rstream_opt {
	__u8 version;
	__u8 role;
	__u8 prelude;
	__u64 nonce;
};

/* Write the RSW_OPT_LEN bytes of @opt to @to (no alignment needed). */
void rstream_opt_write(__u8 *to, const struct rstream_opt *opt);

/**
 * rstream_opt_find() - look for our option
 * @opts: options part of a TCP header
 * @len: its bytes, 0 to 40
 * @opt: filled if RSTREAM_OPT_GOOD is returned
 */
enum rstream_opt_found rstream_opt_find(const __u8 *opts, unsigned int len,
					struct rstream_opt *opt);

#endif
