/* SPDX-License-Identifier: GPL-2.0-only */
/* What IPsec, MACsec or a tunnel protects stays on TCP. */
#ifndef RSTREAM_IPSEC_H
#define RSTREAM_IPSEC_H

#include <linux/types.h>
#include <linux/uidgid.h>
#include <net/dst.h>

#include "base/stats.h"

struct rstream;

/* The route that was last found to be unprotected. */
struct rstream_route {
	struct dst_entry *dst;	/* a reference; NULL: none */
	/* what the program had set that chooses a route */
	const void *ip;		/* IPv4 and IPv6 options, such as a source route; never read */
	kuid_t uid;
	u32 mark;
	int device;		/* SO_BINDTODEVICE */
	__be32 label;		/* flow label */
	int genid;		/* rstream_route_genid() before it was found */
	u8 tos, tclass;
};

/* Is what @sk sends on route @dst protected?  @dst may be NULL.  Any context. */
bool rstream_ipsec_route(const struct sock *sk, const struct dst_entry *dst);

/*
 * May this connection's bytes go by RDMA?  Depends on the current route, which is looked up
 * again if routes or policies have changed.  Held.  Return: NONE, IPSEC, or WAIT_LINK if there
 * is no route at present.
 */
enum rstream_reason rstream_ipsec(struct rstream *rs);

/* Has the route changed since rstream_ipsec() found it to be unprotected?  Held. */
bool rstream_ipsec_moved(const struct rstream *rs);

/*
 * If the connection has become protected, take it off its rings.  Held.  If routes or policies
 * of the host have changed, the link ends, because a sender can't leave a ring by itself.  If
 * only this socket has another route, the connection is reset, because others share the link.
 */
void rstream_ipsec_look(struct rstream *rs);

/* Forget the route that rstream_ipsec() has found. */
void rstream_ipsec_forget(struct rstream *rs);

/*
 * Does the connection go through a tunnel?  Then the other addresses in the peer's HELLO might
 * bypass it.  Held.
 */
bool rstream_tunnelled(const struct rstream *rs);

#endif
