/* SPDX-License-Identifier: GPL-2.0-only */
/* Streams that wait for a link to a peer, or for memory of a link. */
#ifndef RSTREAM_WAITER_H
#define RSTREAM_WAITER_H

#include "link_priv.h"

struct rstream_waiter {
	struct list_head list;		/* peer->asking or peer->notified */
	struct rstream *rs;
	bool notified;			/* of a failure, since it last asked */
	struct rstream_ticket ticket;	/* without tokens if it waits for memory */
	u8 refused;		/* attempts with this token that the peer refused */
};

/*
 * @rs asks for a link, or for memory.  Return: its waiter, created if needed; or NULL if out of
 * memory, after notifying @rs of a failed attempt.
 */
struct rstream_waiter *rstream_waiter_add(struct rstream_peer *peer, struct rstream *rs);
/* Process context; may drop and retake peer->lock. */
void rstream_waiter_notify_some(struct rstream_peer *peer, enum rstream_link_event ev,
				unsigned int n);

/*
 * Called without peer->lock held.  rstream_waiter_notify() is for all waiters, in process context;
 * rstream_waiter_failed() notifies @rs, if it waits, of a failure.
 */
void rstream_waiter_wait(struct rstream_peer *peer, struct rstream *rs);
void rstream_waiter_notify(struct rstream_peer *peer, enum rstream_link_event ev);
void rstream_waiter_failed(struct rstream_peer *peer, struct rstream *rs);

#endif
