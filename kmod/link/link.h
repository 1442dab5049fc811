/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Links, and the two ends of a ring, as the streams see them.
 *
 * A link is one reliable connected QP between two hosts (network namespaces),
 * shared by many streams.  A ring is a power-of-two sized part of the receiver's
 * registered memory (RMB) that is granted to one stream: the receiver holds its
 * rstream_rxring, the sender its rstream_txring.
 *
 *	sender                                receiver
 *	  |      GRANT (record on TCP)           |  rstream_rxring_alloc()
 *	  |<-------------------------------------|
 *	  |  rstream_txring_open()               |
 *	  |      SWITCH (record on TCP)          |
 *	  |------------------------------------->|  rstream_rxring_switched()
 *	  |  rstream_txring_post()               |
 *	  |=== RDMA_WRITE_WITH_IMM: DATA =======>|  ops->data()
 *	  |                                      |  rstream_rxring_credit()
 *	  |<== RDMA_WRITE of the credit cell ====|
 *	  |  rstream_txring_close()              |
 *	  |=== zero-length WITH_IMM: DONE ======>|  memory may be reused
 *
 * Ring memory is reused only after DONE, which RC ordering delivers after the last
 * write of that sender, or after the QP of the link is in error and drained.
 * Therefore, the lifetime of a ring does not depend on the TCP connection through
 * which it was granted.
 *
 * Streams include this header, which includes end.h, peer.h, rxring.h and txring.h, and no other
 * one of this directory.  Links call streams through struct rstream_link_ops.  Only device.c, qp.c,
 * wr.c and rmb.c use the RDMA device (txring.c asks only whether its addresses are virtual), and
 * only cm.c and qp.c call rdma_cm.
 */
#ifndef RSTREAM_LINK_H
#define RSTREAM_LINK_H

#include <linux/types.h>
#include <net/net_namespace.h>

#include "base/net.h"
#include "base/stats.h"
#include "end.h"
#include "peer.h"
#include "rxring.h"
#include "txring.h"

struct rstream;
struct rstream_link;
struct rstream_peer;

/* ---- links ---- */

/*
 * Only rstream_link_set_state() in link.c changes states.  It refuses transitions
 * other than these:
 *
 *	CONNECTING -> UP -> BROKEN -> DEAD
 *	     |                ^
 *	     +----------------+
 *
 * BROKEN: nothing more is posted; the QP is in error and being drained.
 * DEAD: drained and removed from all tables; the last reference frees the memory.
 */
enum rstream_link_state {
	RSTREAM_LINK_CONNECTING,
	RSTREAM_LINK_UP,
	RSTREAM_LINK_BROKEN,
	RSTREAM_LINK_DEAD,
};

void rstream_link_hold(struct rstream_link *link);
void rstream_link_put(struct rstream_link *link);	/* any context */
u32 rstream_link_id(const struct rstream_link *link);	/* ours, per namespace */
bool rstream_link_is_up(const struct rstream_link *link);
bool rstream_link_is_dead(const struct rstream_link *link);
/* Why the link ended; valid once rstream_link_is_up() has returned false. */
enum rstream_reason rstream_link_reason(const struct rstream_link *link);

/*
 * The peer's id of the same link.  A GRANT contains it, because the receiver of the
 * GRANT looks it up among its own ids.
 */
u32 rstream_link_peer_id(const struct rstream_link *link);

/**
 * rstream_cm_proof() - keyed hash that only the two ends of a link can compute
 * @link:	the link
 * @ours:	with the key of this end; otherwise with that of the peer's end
 * @what:	the input
 * @len:	bytes
 *
 * Context: any.
 */
u64 rstream_cm_proof(struct rstream_link *link, bool ours, const void *what,
		     size_t len);

/**
 * rstream_link_find() - look up the link of a GRANT
 * @net:	the local network namespace
 * @peer:	the sender of the GRANT
 * @id:		the local id of the link, which the peer has learnt at bring-up
 *
 * A GRANT can overtake the last step of bring-up: see rstream_link_proven().
 *
 * Context: any. Return: a referenced link to @peer in any state, or NULL.
 */
struct rstream_link *rstream_link_find(struct net *net,
				       struct rstream_peer *peer, u32 id);

/**
 * rstream_link_proven() - an authentic GRANT for the link has arrived
 * @link:	from rstream_link_find()
 *
 * The GRANT shows that the peer's end is up.  The local end comes up, too, if it is ready.
 * Context: any.
 */
void rstream_link_proven(struct rstream_link *link);

/**
 * rstream_link_break() - give the link up
 * @link:	the link
 * @end:	why; the first one counts
 *
 * UP or CONNECTING becomes BROKEN.  A worker then sends RSTREAM_LINK_EV_LOST to every stream
 * with a ring on the link, because there may be many.  Does nothing if the link is already
 * BROKEN or DEAD.
 *
 * Context: any, not from within a callback of the link.
 */
void rstream_link_break(struct rstream_link *link, enum rstream_link_end end);

/* ---- callbacks of links to streams ---- */

enum rstream_link_event {
	RSTREAM_LINK_EV_UP,	/* the peer has a link, or more memory, now */
	RSTREAM_LINK_EV_FAILED,	/* the attempt to establish a link has failed */
	RSTREAM_LINK_EV_DECLINED, /* likewise: the peer is drained of RDMA */
	RSTREAM_LINK_EV_LOST,	/* the link of one of the stream's rings is BROKEN */
	RSTREAM_LINK_EV_DEAD,	/* that link is DEAD: frags can be recalled */
	RSTREAM_LINK_EV_IDLE,	/* the stream's ring has received nothing for some time */
	RSTREAM_LINK_EV_ROUTES,	/* routes or IPsec policies of the namespace have changed */
	RSTREAM_LINK_EV_BUSY,	/* another link would be useful: rstream_peer_want_more() */
	RSTREAM_LINK_EV_MOVE,	/* the stream's ring should be replaced by one on another link */
};

/**
 * struct rstream_link_ops - callbacks that the layer above implements
 * @data:	data or a request for credit has arrived in a ring; @bad: more than fits
 * @space:	a ring may have room again; @credit: because the peer has sent an interrupting
 *		credit, otherwise because the link has resources again
 * @sent:	a post with RSTREAM_POST_NOTIFY has completed
 * @event:	something has happened to a link that the stream uses
 * @waiter:	where links keep what belongs to a stream while it waits for its peer; at first NULL
 * @find:	is there a connection with these tokens?  Called before a link is
 *		accepted; fills in the secrets of @ticket, and the name of the peer
 *
 * Links know nothing else about streams.
 *
 * All but @find are called in softirq or process context with bottom halves disabled, under
 * link->lock or peer->lock; @waiter under peer->lock.  They only store values, wake tasks and queue
 * work.  They never take a socket lock, and never call a function of this file.  The stream's
 * memory and its sock are valid during the call, because a stream is removed from the tables
 * (rstream_rxring_release(), rstream_txring_close(), rstream_waiter_forget()) before its sock
 * is freed.  @find is called in any context, without a lock.
 */
struct rstream_link_ops {
	void (*data)(struct rstream *rs, struct rstream_rxring *ring, bool bad);
	void (*space)(struct rstream *rs, struct rstream_txring *ring, bool credit);
	void (*sent)(struct rstream *rs);
	void (*event)(struct rstream *rs, enum rstream_link_event ev);
	struct rstream_waiter **(*waiter)(struct rstream *rs);
	bool (*find)(struct net *net, struct rstream_ticket *ticket,
		     struct rstream_peer_name *name);
};

/* ---- per namespace ---- */

int rstream_link_net_init(struct net *net);
void rstream_link_net_exit(struct net *net);
int rstream_link_net_register(const struct rstream_link_ops *ops);	/* ib_client, workqueue */
void rstream_link_net_unregister(void);

/*
 * The rdma_cm listener of a namespace exists while it has users.  The first user starts
 * it in a worker.  After the last user, the links of the namespace are closed after the
 * idle time (a second if the namespace is not the initial one), and then the listener,
 * because an rdma_cm_id pins its namespace.
 */
/* @memcg: the user's, see account.h.  Any context. */
void rstream_link_net_use(struct net *net, struct mem_cgroup *memcg);
/*
 * For an accepted socket, which already uses links: offers its memory control group, because
 * the socket may have had none until accept().  Any context.
 */
void rstream_link_net_pays(struct net *net, struct mem_cgroup *memcg);
/*
 * Can a task charge @size bytes to @memcg, or NULL, without being put to sleep because the group
 * or a parent is above memory.high or memory.swap.high then?  Any context.
 */
bool rstream_account_can_charge(struct mem_cgroup *memcg, size_t size);
/* Are there @size bytes left to memory.max of @memcg, or NULL, and its parents?  Any context. */
bool rstream_account_has_room(struct mem_cgroup *memcg, size_t size);
void rstream_link_net_unuse(struct net *net);	/* any context */

/* A link needs devices of the same transport at both ends. */
#define RSTREAM_TRANSPORT_IB	0x1	/* InfiniBand's, also over Ethernet (RoCE) */
#define RSTREAM_TRANSPORT_IWARP	0x2

/*
 * The transports of the usable RDMA devices of this namespace.  In a drain that started with a
 * device, all transports: devices may be gone now and return later.  Cheap, any context.
 */
unsigned int rstream_dev_transports(struct net *net);

static inline bool rstream_link_possible(struct net *net)
{
	return rstream_dev_transports(net);
}

/**
 * rstream_link_net_drain() - start or end a drain
 * @net:	the namespace
 * @on:		start
 *
 * On: breaks the existing links, of which streams are notified as usual, and declines requests
 * of peers.  Off: tries at once to establish links to peers with waiters; the caller notifies
 * the streams.
 * Context: process.
 */
void rstream_link_net_drain(struct net *net, bool on);
bool rstream_link_drained(const struct net *net);	/* any context */

/* Number of links that may still use a device: 0 when a drain has completed. */
unsigned int rstream_link_net_count(const struct net *net);

#endif
