/* SPDX-License-Identifier: GPL-2.0-only */
/* Sending without a copy. */
#ifndef RSTREAM_STREAM_PAGE_H
#define RSTREAM_STREAM_PAGE_H

#include <linux/types.h>

struct msghdr;
struct rstream;
struct ubuf_info;

struct rstream_zerocopy {
	u32 seq;		/* TCP sequence number after the last bytes of MSG_ZEROCOPY */
	bool awaited;		/* pages were sent in place: their owner waits for their release */
	bool on_tcp;		/* TCP may still have pages up to @seq */
	bool acked;		/* the peer's TCP has acknowledged them */
};

/* All with the socket held. */
ssize_t rstream_tx_refer(struct rstream *rs, struct msghdr *msg, u64 max);
ssize_t rstream_tx_pin(struct rstream *rs, struct msghdr *msg, u64 max,
		       struct ubuf_info *uarg);
struct ubuf_info *rstream_zerocopy_begin(struct rstream *rs, struct msghdr *msg);
void rstream_zerocopy_end(struct ubuf_info *uarg, bool sent);
bool rstream_zerocopy_waits(struct rstream *rs);
bool rstream_tx_awaited(struct rstream *rs);

#endif
