/* SPDX-License-Identifier: GPL-2.0-only */
/* Peers, which are other network namespaces, as the streams see them.  Included by link.h. */
#ifndef RSTREAM_PEER_H
#define RSTREAM_PEER_H

#include <linux/in6.h>
#include <linux/socket.h>
#include <linux/types.h>
#include <net/net_namespace.h>

#include "base/net.h"

struct rstream;
struct rstream_link;
struct rstream_peer;
struct rstream_rxring;
struct rstream_waiter;

/**
 * struct rstream_peer_name - identity of a peer
 * @instance:	the id in its HELLO
 * @local:	local address of the TCP connection, IPv6 or v4-mapped
 * @remote:	remote address of the TCP connection, likewise
 * @scope:	interface of a link-local @remote, else 0
 *
 * A host can claim any instance id, so an id counts only together with the addresses of the
 * connection: a host that claims another one's id shares nothing with it.  Both ends see the
 * same pair of addresses, so they agree on the connections to which a link belongs.
 */
struct rstream_peer_name {
	u8 instance[RSTREAM_INSTANCE_LEN];
	struct in6_addr local, remote;
	int scope;
};

/**
 * rstream_peer_get() - find or create a peer
 * @net:	the local network namespace
 * @name:	from a connection whose HELLO has arrived
 *
 * Context: any, does not sleep.
 * Return: a referenced peer, or NULL if out of memory or at the limit on peers.
 */
struct rstream_peer *rstream_peer_get(struct net *net,
				      const struct rstream_peer_name *name);
void rstream_peer_put(struct rstream_peer *peer);

#define RSTREAM_SECRET_LEN 16

/**
 * struct rstream_ticket - identity of a TCP connection for which a link is established
 * @ours:	from our HELLO
 * @theirs:	from the peer's HELLO; the token is 0 until the HELLO has arrived
 *
 * The tokens identify the connection in rdma_cm messages, which others may read.  The secrets
 * are sent only over TCP: whoever knows both must have seen both HELLOs.
 */
struct rstream_ticket {
	struct {
		u64 token;
		u8 secret[RSTREAM_SECRET_LEN];
	} ours, theirs;
};

/**
 * struct rstream_peer_route - addresses for rdma_cm
 * @local:	local address of the TCP connection (never v4-mapped)
 * @remote:	the peer's address and rdma_cm port, network order
 * @ticket:	of the TCP connection
 */
struct rstream_peer_route {
	struct sockaddr_storage local;
	struct sockaddr_storage remote;
	struct rstream_ticket ticket;
};

/**
 * rstream_peer_set_drained() - record whether the peer is drained
 * @peer:	the peer
 * @drained:	from its HELLO
 *
 * On the passive side, only the HELLO shows this.
 *
 * Context: any.
 */
void rstream_peer_set_drained(struct rstream_peer *peer, bool drained);

/**
 * rstream_peer_addrs() - add the addresses in the peer's HELLO
 * @peer:	the peer
 * @addrs:	@n addresses, IPv6 or v4-mapped, network order
 * @n:		number of addresses
 * @port:	its rdma_cm port
 *
 * Links are tried to these if the address of the TCP connection fails, or if one path is not
 * enough.  Context: any, does not sleep.
 */
void rstream_peer_addrs(struct rstream_peer *peer, const u8 addrs[][16],
			unsigned int n, u16 port);

/**
 * rstream_path_addrs() - further RDMA addresses of this namespace, for HELLO
 * @net:	the local network namespace
 * @own:	local address of the TCP connection, IPv6 or v4-mapped
 * @addrs:	result: one address of each RDMA netdev that does not have @own
 * @max:	size of @addrs
 *
 * Context: any, does not sleep.  Return: number of addresses.
 */
unsigned int rstream_path_addrs(struct net *net, const struct in6_addr *own,
				struct in6_addr *addrs, unsigned int max);

/**
 * rstream_peer_active() - does this host connect the links to this peer?
 * @peer:	the peer
 *
 * The namespace with the greater instance id (memcmp) is always the active side, so
 * two hosts never connect the same link from both ends.  A namespace with links to
 * itself (equal ids) is both ends.
 */
bool rstream_peer_active(const struct rstream_peer *peer);

/**
 * rstream_peer_want_link() - bring up a link in the background
 * @peer:	the peer; on the passive side this only adds a waiter
 * @route:	used for this attempt; copied
 * @rs:		the stream that needs the link
 *
 * @rs waits until ops->event() reports UP, or until rstream_waiter_forget().  It is also notified
 * of the first attempt that fails after each call.  While an attempt is in progress, or during the
 * pause after a failed one, this only adds @rs to the waiters: if there are any at the end of the
 * pause, another attempt follows.
 *
 * Context: any, does not sleep.
 */
void rstream_peer_want_link(struct rstream_peer *peer,
			    const struct rstream_peer_route *route,
			    struct rstream *rs);
void rstream_waiter_forget(struct rstream_peer *peer, struct rstream *rs);

/**
 * rstream_peer_asks() - the peer, which is passive, has requested a link
 * @peer:	the peer
 *
 * If the peer has declined links because it was drained, it is no longer drained: if a stream
 * waits for a link, the next attempt is made before the pause is over.
 * Context: any, does not sleep.
 */
void rstream_peer_asks(struct rstream_peer *peer);

/**
 * rstream_peer_link() - select a link to the peer that is up
 * @peer:	the peer
 * @size:	size of the ring that is wanted, bytes
 *
 * Prefers links with room for the ring, among these the ones with the fewest receiving rings,
 * then one whose device is on this CPU's NUMA node.
 *
 * Context: any. Return: a referenced link in state UP, or NULL.
 */
struct rstream_link *rstream_peer_link(struct rstream_peer *peer, u32 size);

/**
 * rstream_peer_has_better_link() - would a ring of the same size now go to another link?
 * @peer:	the peer of @ring's link
 * @ring:	a receiving end
 *
 * Return: true if so, and that link has room for it.  Context: any.
 */
bool rstream_peer_has_better_link(struct rstream_peer *peer, const struct rstream_rxring *ring);

/**
 * rstream_peer_want_more() - bring up another link if all are busy and a path allows more
 * @peer:	the peer; does nothing on the passive side
 * @route:	as in rstream_peer_want_link()
 *
 * Context: any, does not sleep.
 */
void rstream_peer_want_more(struct rstream_peer *peer,
			    const struct rstream_peer_route *route);

#endif
