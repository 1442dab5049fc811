/* SPDX-License-Identifier: GPL-2.0-only */
/* With whom a socket negotiates, as its program has said: RDMASTREAM_RULES. */
#ifndef RSTREAM_RULES_H
#define RSTREAM_RULES_H

#include <linux/sockptr.h>
#include <net/inet_sock.h>

#include "stream.h"

/* setsockopt(RDMASTREAM_RULES).  Takes the socket lock. */
int rstream_rules_set(struct rstream *rs, sockptr_t optval, unsigned int optlen);

/* With the peer that connect() was told? */
bool rstream_rules_connect(const struct rstream *rs, const struct sockaddr_unsized *addr,
			   int len);

/* @rs: the listener.  With this client: a request, or what became of it? */
bool rstream_rules_accept(const struct rstream *rs, const struct sock_common *client);

#endif
