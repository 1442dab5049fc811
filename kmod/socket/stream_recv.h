/* SPDX-License-Identifier: GPL-2.0-only */
/* Receive calls. */
#ifndef RSTREAM_STREAM_RECV_H
#define RSTREAM_STREAM_RECV_H

#include <linux/types.h>

struct msghdr;
struct rstream;
struct socket;

int rstream_recvmsg(struct socket *sock, struct msghdr *msg, size_t len,
		    int flags);
int rstream_recv_begin(struct rstream *rs, struct socket *sock, int flags);

void rstream_recv_accepted(struct rstream *rs);
bool rstream_recv_end_here(const struct rstream *rs);	/* without the lock, while others read */

/* For readers.  Held. */
/* Take plain bytes from TCP, unless the queue has some.  Return: false without memory. */
bool rstream_recv_take_plain(struct rstream *rs);
size_t rstream_recv_next(struct rstream *rs, size_t len, u64 *ahead, bool peek);
int rstream_recv_copy(struct rstream *rs, struct msghdr *msg, size_t len,
		      u64 skip, bool trunc);
bool rstream_recv_seen(struct rstream *rs, u64 ahead, size_t len);
void rstream_recv_consume(struct rstream *rs, size_t len);
void rstream_recv_ack(struct rstream *rs);
int rstream_recv_status(struct rstream *rs, bool *eof);
int rstream_recv_wait(struct rstream *rs, long *timeo, u64 more_than, bool peek);

#endif
