/* SPDX-License-Identifier: GPL-2.0-only */
/* Urgent data. */
#ifndef RSTREAM_STREAM_URG_H
#define RSTREAM_STREAM_URG_H

#include <linux/types.h>

#include "base/stats.h"

struct msghdr;
struct rstream;

/* State of the urgent byte at the receiver. */
enum rstream_urgent {
	RSTREAM_URG_NONE,
	RSTREAM_URG_NEW,	/* announced; may not have arrived yet */
	RSTREAM_URG_READ,	/* read out of band, the mark is still ahead */
};

struct rstream_urg {
	u64 sent;		/* offset after the last one that we sent */
	u64 at;			/* offset of the received one, if @state */
	u8 state;		/* enum rstream_urgent */
};

void rstream_urg_send(struct rstream *rs);
bool rstream_urg_heard(struct rstream *rs);
enum rstream_reason rstream_urg_got(struct rstream *rs, u64 offset);
void rstream_urg_mark(struct rstream *rs, u64 at);
int rstream_urg_recv(struct rstream *rs, struct msghdr *msg, size_t len,
		     int flags);

#endif
