/* SPDX-License-Identifier: GPL-2.0-only */
/* Receiving bytes without records. */
#ifndef RSTREAM_PLAIN_RECV_H
#define RSTREAM_PLAIN_RECV_H

#include <linux/ktime.h>
#include <linux/types.h>

#include "base/stats.h"

struct msghdr;
struct rstream;
struct sk_buff;

/* What we receive.  Read locklessly: @in_tcp, @behind, @other. */
struct rstream_plain_rx {
	u64 in_tcp;		/* arrived bytes left in TCP's queue */
	/* this many bytes after plain.phase.rx_end are whole spans, with their PLAIN records */
	u64 clear;
	u64 behind;		/* bytes of these that have arrived, without PLAIN; if UNREAD */
	u32 spans;		/* how many spans @clear is */
	bool other;		/* what follows @clear is not PLAIN */
	bool part_is_data;	/* rstream.part begins with data, for which there was no memory */
	bool reset;		/* TCP has ended with an error */
};

/* What arrives.  Held, as all of these. */
bool rstream_plain_recv_fast(struct rstream *rs);
bool rstream_plain_recv(struct rstream *rs);
unsigned int rstream_plain_recv_parse(struct rstream *rs, struct sk_buff *skb,
				      unsigned int off, unsigned int len, bool *hello);
void rstream_plain_recv_not_hello(struct rstream *rs, bool none);
enum rstream_reason rstream_plain_recv_span(struct rstream *rs, u64 len, u32 seq);
void rstream_plain_recv_hello(struct rstream *rs);
void rstream_plain_recv_timeout(struct rstream *rs);
void rstream_plain_recv_eof(struct rstream *rs);
void rstream_plain_recv_check_truncated(struct rstream *rs);
void rstream_plain_recv_note_reset(struct rstream *rs);
bool rstream_plain_recv_full(struct rstream *rs);
void rstream_plain_recv_rest(struct rstream *rs);
bool rstream_plain_recv_span_over(const struct rstream *rs);
bool rstream_plain_recv_paused(struct rstream *rs);

/* To the program. */
bool rstream_plain_recv_partial(const struct rstream *rs);
bool rstream_plain_recv_stays(struct rstream *rs);
bool rstream_plain_recv_in_tcp(const struct rstream *rs);
void rstream_plain_recv_more(struct rstream *rs);
void rstream_plain_recv_refill(struct rstream *rs, u64 ahead);
bool rstream_plain_recv_pull(struct rstream *rs, u64 end);
int rstream_plain_recv_peek(struct rstream *rs, struct msghdr *msg, size_t len, u64 skip,
			    ktime_t *stamp);
bool rstream_plain_recv_ends(const struct rstream *rs);
int rstream_plain_recv_copy(struct rstream *rs, struct msghdr *msg, size_t len);

#endif
