/* SPDX-License-Identifier: GPL-2.0-only */
/* Bytes that are sent without records: the prelude, and spans. */
#ifndef RSTREAM_PLAIN_H
#define RSTREAM_PLAIN_H

#include <linux/types.h>

#include "base/stats.h"
#include "protocol/carrier.h"

struct msghdr;
struct rstream;
struct rstream_record;
struct sk_buff;

struct rstream_plain {
	u64 in_tcp;		/* arrived bytes left in TCP's queue; read locklessly */
	u64 tx_from;		/* tcp_sock.bytes_acked when all before the first span is acked */
	u32 tx_start;		/* TCP sequence number of the first byte that we send */
	u32 rx_start;		/* TCP sequence number of a received byte, less its offset */
	struct rstream_phases phase;	/* which direction is without records */
	u8 grown;		/* how often the length of the next span was doubled */
	bool part_is_data;	/* rstream.part begins with data, for which there was no memory */
	bool more;		/* TCP has more, which we take when what precedes it is read */
	bool reset;		/* TCP has ended with an error */
	bool ring;		/* a ring may be possible: return to records when the span ends */
	u64 clear;		/* so many bytes after phase.rx_end are spans with their PLAIN */
	u64 seen;		/* end of TCP's queue when readers were last told of spans there */
	bool other;		/* what follows these is no PLAIN */
};

/* All with the socket held. */
void rstream_plain_begin(struct rstream *rs);
bool rstream_plain_only(const struct rstream *rs);
void rstream_plain_want_hello(struct rstream *rs);
void rstream_plain_timeout(struct rstream *rs);

/* Spans: no records while no ring is available. */
bool rstream_plain_span_due(const struct rstream *rs);
bool rstream_plain_span_control(struct rstream *rs, struct rstream_record *rec);
enum rstream_reason rstream_plain_span_received(struct rstream *rs, u64 len, u32 seq);
void rstream_plain_span_reset(struct rstream *rs);

/* what we send */
bool rstream_plain_tx_idle(const struct rstream *rs);
void rstream_plain_tx_end(struct rstream *rs);
size_t rstream_plain_send_fast(struct rstream *rs, struct msghdr *msg);
ssize_t rstream_plain_send(struct rstream *rs, struct msghdr *msg);
u32 rstream_plain_data(struct rstream *rs);
void rstream_plain_send_fin(struct rstream *rs);

/* what arrives */
bool rstream_plain_rx_fast(struct rstream *rs);
bool rstream_plain_rx(struct rstream *rs);
unsigned int rstream_plain_parse(struct rstream *rs, struct sk_buff *skb,
				 unsigned int off, unsigned int len,
				 bool *hello);
void rstream_plain_not_hello(struct rstream *rs, bool none);
void rstream_plain_got_hello(struct rstream *rs);
void rstream_plain_rx_eof(struct rstream *rs);
void rstream_plain_check_truncated(struct rstream *rs);
bool rstream_plain_rx_full(struct rstream *rs);
bool rstream_plain_rx_span_over(const struct rstream *rs);
bool rstream_plain_paused(struct rstream *rs);

/* to the program */
bool rstream_plain_partial(const struct rstream *rs);
bool rstream_plain_stays(struct rstream *rs);
bool rstream_plain_in_tcp(const struct rstream *rs);
u64 rstream_plain_behind(const struct rstream *rs);
void rstream_plain_rx_more(struct rstream *rs);
void rstream_plain_refill(struct rstream *rs, u64 ahead);
bool rstream_plain_pull(struct rstream *rs, u64 end);
int rstream_plain_copy(struct rstream *rs, struct msghdr *msg, size_t len);

#endif
