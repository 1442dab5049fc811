/* SPDX-License-Identifier: GPL-2.0-only */
/* Send calls. */
#ifndef RSTREAM_STREAM_SEND_H
#define RSTREAM_STREAM_SEND_H

#include <linux/types.h>

struct msghdr;
struct page;
struct rstream;
struct socket;

int rstream_sendmsg(struct socket *sock, struct msghdr *msg, size_t len);
ssize_t rstream_sendpage(struct socket *sock, struct page *page, int off,
			 size_t len, int flags);

/* Held. */
void rstream_send_room(struct rstream *rs);

#endif
