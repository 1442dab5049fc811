/* SPDX-License-Identifier: GPL-2.0-only */
/* Sending without a copy. */
#ifndef RSTREAM_STREAM_PAGE_H
#define RSTREAM_STREAM_PAGE_H

#include <linux/types.h>

struct msghdr;
struct rstream;
struct ubuf_info;

/* Pages of MSG_ZEROCOPY that TCP was given. */
enum rstream_zerocopy_tcp {
	RSTREAM_ZC_NONE,	/* TCP has none */
	RSTREAM_ZC_SENT,	/* it has those up to @seq */
	RSTREAM_ZC_ACKED,	/* acknowledged; packets may still have them */
};

struct rstream_zerocopy {
	u32 seq;		/* TCP sequence number after the last bytes of MSG_ZEROCOPY */
	u8 tcp;			/* enum rstream_zerocopy_tcp */
	bool awaited;		/* pages were sent in place: their owner waits for their release */
};

/* All with the socket held. */
ssize_t rstream_page_refer(struct rstream *rs, struct msghdr *msg, u64 max);
ssize_t rstream_page_pin(struct rstream *rs, struct msghdr *msg, u64 max,
			 struct ubuf_info *uarg);
struct ubuf_info *rstream_zerocopy_begin(struct rstream *rs, struct msghdr *msg);
void rstream_zerocopy_end(struct ubuf_info *uarg, bool sent);
void rstream_zerocopy_by_tcp(struct rstream *rs);
bool rstream_zerocopy_waits(struct rstream *rs);
bool rstream_page_awaited(struct rstream *rs);

#endif
