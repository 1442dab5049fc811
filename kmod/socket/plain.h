/* SPDX-License-Identifier: GPL-2.0-only */
/* Bytes without records: the prelude and spans, and how we send them. */
#ifndef RSTREAM_PLAIN_H
#define RSTREAM_PLAIN_H

#include <linux/types.h>

#include "base/stats.h"
#include "protocol/carrier.h"

struct msghdr;
struct rstream;
struct rstream_record;

/* The phases of both directions, and what we send. */
struct rstream_plain {
	u64 tx_from;		/* tcp_sock.bytes_acked when all before the first span is acked */
	u32 tx_start;		/* TCP sequence number of the first byte that we send */
	u32 rx_start;		/* TCP sequence number of a received byte, less its offset */
	struct rstream_phases phase;	/* which direction is without records */
	u8 grown;		/* how often the length of the next span was doubled */
	bool ring;		/* a ring may be possible: return to records when the span ends */
	u32 left_at;		/* tcp_jiffies32 when we last returned from a span */
};

/* More than any stream will ever reach. */
#define RSTREAM_ENDLESS		BIT_ULL(62)

/*
 * Length of the first span in bytes; the following ones double.  A busy stream reaches the end of
 * a span often enough to notice that a ring is available, but pays for few.
 */
#define RSTREAM_SPAN_FIRST	SZ_64K

#define RSTREAM_PLAIN_LEN	(sizeof(struct rsw_header) + sizeof(struct rsw_plain))

/* All with the socket held. */
void rstream_plain_begin(struct rstream *rs);
bool rstream_plain_only(const struct rstream *rs);
void rstream_plain_want_hello(struct rstream *rs);
bool rstream_plain_one_way(struct rstream *rs);

/* Spans: no records while no ring is available. */
bool rstream_plain_span_due(const struct rstream *rs);
bool rstream_plain_span_control(struct rstream *rs, struct rstream_record *rec);
void rstream_plain_span_reset(struct rstream *rs);

/* what we send */
bool rstream_plain_tx_idle(const struct rstream *rs);
bool rstream_plain_tx_over(const struct rstream *rs);
void rstream_plain_tx_next(struct rstream *rs, bool paused);
size_t rstream_plain_send_fast(struct rstream *rs, struct msghdr *msg);
ssize_t rstream_plain_send(struct rstream *rs, struct msghdr *msg);
u32 rstream_plain_data(struct rstream *rs);
void rstream_plain_send_fin(struct rstream *rs);

#endif
