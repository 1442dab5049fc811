/* SPDX-License-Identifier: GPL-2.0-only */
/* RDMASTREAM_RULES: the peers with which a program lets its socket negotiate. */
#ifndef RSTREAM_RULES_H
#define RSTREAM_RULES_H

#include <linux/sockptr.h>
#include <net/inet_sock.h>

#include "stream.h"

/* setsockopt(RDMASTREAM_RULES).  Takes the socket lock. */
int rstream_rules_set(struct rstream *rs, sockptr_t optval, unsigned int optlen);

/* Do the rules allow the peer that was passed to connect()? */
bool rstream_rules_connect(const struct rstream *rs, const struct sockaddr_unsized *addr,
			   int len);

/* Do the rules of listener @rs allow this client?  @client: a request, or its child. */
bool rstream_rules_accept(const struct rstream *rs, const struct sock_common *client);

#endif
