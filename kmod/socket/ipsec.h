/* SPDX-License-Identifier: GPL-2.0-only */
/* What IPsec or MACsec protects stays on TCP. */
#ifndef RSTREAM_IPSEC_H
#define RSTREAM_IPSEC_H

#include <net/dst.h>

#include "stream.h"

/* Is what @sk sends by @dst protected?  @dst may be NULL.  Any context. */
bool rstream_ipsec_route(const struct sock *sk, const struct dst_entry *dst);

/*
 * May this connection's bytes go by RDMA?  By the route of now, which is looked up anew
 * if routes or policies have changed.  Held.  Return: NONE, IPSEC, or WAIT_LINK: there
 * is no route just now.
 */
enum rstream_reason rstream_ipsec(struct rstream *rs);

/* Held: has the socket another route than rstream_ipsec() found to be unprotected? */
bool rstream_ipsec_moved(const struct rstream *rs);

/*
 * Held: no ring any more, if the connection has become protected.  If the host did that the
 * link ends, for a sender can't leave a ring by itself; if only its own socket has another
 * route the connection is reset, for others share the link.
 */
void rstream_ipsec_look(struct rstream *rs);

/* Forgets what rstream_ipsec() has found. */
void rstream_ipsec_forget(struct rstream *rs);

/*
 * Does the connection go through a tunnel?  What the peer then names as other addresses
 * would lead around it.  Held.
 */
bool rstream_tunnelled(const struct rstream *rs);

#endif
