/* SPDX-License-Identifier: GPL-2.0-only */
/* Encodes and decodes the TCP option.  Pure. */
#ifndef RSTREAM_OPTION_H
#define RSTREAM_OPTION_H

#include "wire.h"

/* Result of looking for our option in a TCP header. */
enum rstream_opt_found {
	RSTREAM_OPT_NONE,
	RSTREAM_OPT_GOOD,
	RSTREAM_OPT_BAD,	/* malformed options, or ours more than once */
};

/**
 * struct rstream_opt - the option's content
 * @version: 1 to 15
 * @role: enum rsw_role
 * @prelude: 1 if the connection begins without records
 * @nonce: 56 bits
 */
struct rstream_opt {
	__u8 version;
	__u8 role;
	__u8 prelude;
	__u64 nonce;
};

/* Writes @opt to @to: RSW_OPT_LEN bytes, no alignment needed. */
void rstream_option_write(__u8 *to, const struct rstream_opt *opt);

/**
 * rstream_option_find() - look for our option
 * @opts: options part of a TCP header
 * @len: length of @opts, 0 to 40 bytes
 * @opt: filled in if RSTREAM_OPT_GOOD is returned
 */
enum rstream_opt_found rstream_option_find(const __u8 *opts, unsigned int len,
					   struct rstream_opt *opt);

#endif
