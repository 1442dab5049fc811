/* SPDX-License-Identifier: GPL-2.0-only */
/* The first bytes, without records. */
#ifndef RSTREAM_PRELUDE_H
#define RSTREAM_PRELUDE_H

#include <linux/types.h>

#include "protocol/carrier.h"

struct msghdr;
struct rstream;
struct sk_buff;

struct rstream_prelude {
	u64 lazy;		/* bytes that are in TCP's queue; read locklessly */
	u32 tx_start;		/* TCP sequence number of the first byte that we send */
	u32 rx_start;		/* likewise, of the first that comes */
	struct rstream_plains dir;	/* which direction is still without records */
	bool part_back;		/* bytes in rstream.part are the program's, without memory */
};

/* All with the socket held. */
void rstream_prelude_begin(struct rstream *rs);
bool rstream_prelude_only(const struct rstream *rs);
void rstream_hello_say(struct rstream *rs);
void rstream_prelude_late(struct rstream *rs);

/* what we send */
u64 rstream_prelude_room(const struct rstream *rs);
void rstream_prelude_look(struct rstream *rs);
ssize_t rstream_prelude_send(struct rstream *rs, struct msghdr *msg);
u32 rstream_prelude_data(struct rstream *rs);
void rstream_prelude_fin(struct rstream *rs);

/* what comes */
bool rstream_prelude_ready(struct rstream *rs);
unsigned int rstream_prelude_parse(struct rstream *rs, struct sk_buff *skb,
				   unsigned int off, unsigned int len,
				   bool *hello);
void rstream_prelude_no_hello(struct rstream *rs, bool none);
void rstream_prelude_heard(struct rstream *rs);
void rstream_prelude_over(struct rstream *rs);
void rstream_prelude_cut(struct rstream *rs);
bool rstream_prelude_full(const struct rstream *rs);
bool rstream_rx_held(const struct rstream *rs);

/* to the program */
void rstream_prelude_more(struct rstream *rs);
bool rstream_prelude_pull(struct rstream *rs, u64 end);
int rstream_prelude_copy(struct rstream *rs, struct msghdr *msg, size_t len);

#endif
