/* SPDX-License-Identifier: GPL-2.0-only */
/* Bytes that are sent without records: the prelude, and spans. */
#ifndef RSTREAM_PRELUDE_H
#define RSTREAM_PRELUDE_H

#include <linux/types.h>

#include "base/stats.h"
#include "protocol/carrier.h"

struct msghdr;
struct rstream;
struct rstream_record;
struct sk_buff;

struct rstream_prelude {
	u64 lazy;		/* arrived bytes left in TCP's queue; read locklessly */
	u64 tx_from;		/* tcp_sock.bytes_acked when all before the first span is acked */
	u32 tx_start;		/* TCP sequence number of the first byte that we send */
	u32 rx_start;		/* TCP sequence number of a received byte, less its offset */
	struct rstream_plains dir;	/* which direction is without records */
	u8 grown;		/* how often the length of the next span was doubled */
	bool part_back;		/* rstream.part begins with data, for which there was no memory */
	bool held;		/* TCP has more, which we take once rxq has been read */
	bool reset;		/* TCP has ended with an error */
	bool ring;		/* a ring may be possible: return to records when the span ends */
	u8 behind;		/* the byte after the span that ends at @behind_at */
	u64 behind_at;		/* stream offset, 0: not known */
};

/* All with the socket held. */
void rstream_prelude_begin(struct rstream *rs);
bool rstream_prelude_only(const struct rstream *rs);
void rstream_hello_say(struct rstream *rs);
void rstream_prelude_late(struct rstream *rs);

/* Spans: no records while no ring is available. */
bool rstream_span_due(const struct rstream *rs);
bool rstream_span_control(struct rstream *rs, struct rstream_record *rec);
enum rstream_reason rstream_span_heard(struct rstream *rs, u64 len, u32 seq);
void rstream_span_useful(struct rstream *rs);

/* what we send */
bool rstream_prelude_idle(const struct rstream *rs);
u64 rstream_prelude_room(const struct rstream *rs);
void rstream_prelude_look(struct rstream *rs);
size_t rstream_prelude_send_easy(struct rstream *rs, struct msghdr *msg);
ssize_t rstream_prelude_send(struct rstream *rs, struct msghdr *msg);
u32 rstream_prelude_data(struct rstream *rs);
void rstream_prelude_fin(struct rstream *rs);

/* what arrives */
bool rstream_prelude_came(struct rstream *rs);
bool rstream_prelude_ready(struct rstream *rs);
unsigned int rstream_prelude_parse(struct rstream *rs, struct sk_buff *skb,
				   unsigned int off, unsigned int len,
				   bool *hello);
void rstream_prelude_no_hello(struct rstream *rs, bool none);
void rstream_prelude_heard(struct rstream *rs);
void rstream_prelude_over(struct rstream *rs);
void rstream_prelude_cut(struct rstream *rs);
bool rstream_prelude_full(struct rstream *rs);
bool rstream_rx_held(struct rstream *rs);

/* to the program */
bool rstream_prelude_part(const struct rstream *rs);
bool rstream_prelude_stays(struct rstream *rs);
bool rstream_prelude_untouched(const struct rstream *rs);
void rstream_prelude_more(struct rstream *rs);
void rstream_prelude_refill(struct rstream *rs);
bool rstream_prelude_pull(struct rstream *rs, u64 end);
int rstream_prelude_copy(struct rstream *rs, struct msghdr *msg, size_t len);

#endif
