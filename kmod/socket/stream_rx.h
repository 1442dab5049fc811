/* SPDX-License-Identifier: GPL-2.0-only */
/* Receive calls. */
#ifndef RSTREAM_STREAM_RX_H
#define RSTREAM_STREAM_RX_H

#include <linux/types.h>

struct msghdr;
struct rstream;
struct socket;

int rstream_recvmsg(struct socket *sock, struct msghdr *msg, size_t len,
		    int flags);
int rstream_rx_begin(struct rstream *rs, struct socket *sock, int flags);

void rstream_rx_accepted(struct rstream *rs);

/* For readers.  Held. */
size_t rstream_rx_next(struct rstream *rs, size_t len, u64 *ahead, bool peek);
int rstream_rx_copy(struct rstream *rs, struct msghdr *msg, size_t len,
		    u64 skip, bool trunc);
bool rstream_rx_seen(struct rstream *rs, u64 ahead, size_t len);
void rstream_rx_consume(struct rstream *rs, size_t len);
void rstream_rx_ack(struct rstream *rs);
int rstream_rx_status(struct rstream *rs, bool *eof);
int rstream_rx_wait(struct rstream *rs, long *timeo, u64 more_than);

#endif
